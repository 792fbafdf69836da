//! Layers that fail half-way.

use std::fs;
use std::os::unix::fs::chown;

use moored_containment::{Command, Layer, StartError, Stdio, StrengthLevel, Use};
use moored_testkit::{User, lacking};

use crate::assert_clean;
use crate::common::belongings::Belongings;
use crate::common::hold::{Hold, cells, cells_with};
use crate::common::part::{Part, stage};
use crate::common::short;

fn cat(layer: Layer, wanted: Use) -> Command {
    let mut command = Command::new("cat");
    command.stdin(Stdio::Pipe).stdout(Stdio::Null).ladder(short());
    command.layer(Layer::Cgroup, Use::Off).layer(layer, wanted);
    command
}

/// Required it is refused by its name; only wanted it is left out, and the strength says so.
#[track_caller]
fn assert_is_not_to_be_had(missing: Layer) {
    drop(cat(missing, Use::Off).spawn().expect("cat"));
    let before = Belongings::now();
    let error = cat(missing, Use::Required).spawn().expect_err("it cannot be had");
    assert!(matches!(&error, StartError::LayerUnavailable { layer, .. } if *layer == missing), "{error:?}");
    let words = error.to_string();
    assert!(words.contains("`cat`") && words.contains(&missing.to_string()), "{words}");
    assert_eq!(error.exit_code(), 125);
    assert_eq!(Belongings::now(), before, "{error}");

    let mut server = cat(missing, Use::IfAvailable).spawn().expect("weaker, but started");
    assert!(!server.strength().has(missing), "{:?}", server.strength());
    assert_eq!(server.strength().level, StrengthLevel::Loop);
    let report = server.end(short()).expect("a report");
    assert!(report.verified && !report.strength.has(missing), "{report:?}");
    drop(server);
    let after = Belongings::now();
    assert_eq!(after, before);
    after.assert_nothing_of_sessions();
}

// === a leaf that can be made but not entered ===

/// The folder was handed over, its list of processes was not.
#[test]
fn a_leaf_that_may_not_be_entered_is_not_to_be_had() {
    if cells_with(Hold::Cgroup).is_empty() || User::current() != User::Root {
        return;
    }
    let part = Part::new("layers::part_in_a_group_that_refuses", User::Plain);
    let group = part.group.as_ref().expect("cgroups").path();
    chown(group.join("cgroup.procs"), Some(0), Some(0)).expect("ours");
    part.play();
    assert_clean(&part);
}

/// Inside a threaded group every new one is invalid, and takes nobody.
#[test]
fn a_leaf_that_takes_nobody_is_not_to_be_had() {
    for cell in cells_with(Hold::Cgroup) {
        let part = Part::new("layers::part_in_a_group_that_refuses", cell.0);
        let group = part.group.as_ref().expect("cgroups").path();
        if fs::write(group.join("cgroup.type"), "threaded").is_ok() {
            part.play();
            assert_clean(&part);
        } else {
            lacking("threaded cgroups");
        }
    }
}

#[test]
#[ignore = "a part that another test plays in a group that refuses"]
fn part_in_a_group_that_refuses() {
    if stage().is_some() {
        assert_is_not_to_be_had(Layer::Cgroup);
    }
}

// === no more user namespaces ===

#[test]
fn a_namespace_too_many_is_not_to_be_had_needs_unshare() {
    if !cells().contains(&(User::Plain, Hold::Strict)) {
        return;
    }
    let part = Part::new("layers::part_without_namespaces", User::Plain);
    let script = r#"echo 0 >/proc/sys/user/max_user_namespaces && exec "$@""#;
    let mut argv = ["-Uc", "--keep-caps", "sh", "-c", script, "sh"].map(str::to_owned).to_vec();
    argv.extend(part.argv());
    let played = part.set(part.wrap().command("unshare", argv)).output().expect("unshare");
    let words = String::from_utf8_lossy(&played.stdout);
    assert!(played.status.success() && words.contains("1 passed"), "{played:?}");
    assert_clean(&part);
}

#[test]
#[ignore = "a part that another test plays where there are no namespaces to be had"]
fn part_without_namespaces() {
    if stage().is_some() {
        assert_is_not_to_be_had(Layer::Pidns);
    }
}

// === what root cannot have ===

#[test]
fn root_cannot_be_sealed() {
    if User::current() == User::Root {
        let part = Part::new("layers::part_of_root", User::Root);
        part.play();
        assert_clean(&part);
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_of_root() {
    if stage().is_some() {
        assert_is_not_to_be_had(Layer::Landlock);
    }
}
