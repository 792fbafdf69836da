//! Nothing is left of a session's cgroup, whatever the tree made in it and however the session went.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use moored_containment::ProcessIdentity;
use moored_testkit::{MarkGuard, Scratch, User, example, lacking, wait_until};
use rustix::process::Signal;

use crate::common::ending::Ending;
use crate::common::group::Group;
use crate::common::hold::{Hold, cells_with};
use crate::common::host::Plan;
use crate::common::traces::{assert_nothing_left, records, sweep_as};
use crate::common::{DEADLINE, send};

#[test]
fn groups_inside_the_leaf_go_with_it_however_deep_and_long_their_names() {
    for cell in cells_with(Hold::Cgroup).into_iter().filter(|cell| cell.0 == User::current()) {
        let mut host = Plan::new(cell, Ending::End).misbehave(["--tree", "2"]).start();
        let leaf = host.group.as_ref().expect("a group").leaves().remove(0);
        let deep: PathBuf = (0..60).fold(leaf.join("a"), |path, _| path.join("b"));
        let long = leaf.join("x".repeat(200)).join("y".repeat(255));
        for folder in [deep, long, leaf.join("beside/it")] {
            fs::create_dir_all(folder).expect("our own group");
        }
        host.bring_end();
        assert!(host.report().expect("a report").verified);
        assert_nothing_left(&mut host);
    }
}

/// The owner is the first process of its PID namespace: with it the kernel kills all there is, and nobody cleans up.
#[test]
fn the_leaf_of_a_namespace_that_is_gone_is_swept_needs_unshare() {
    if User::current() != User::Root {
        return;
    }
    let Some(group) = Group::for_user(User::Root) else {
        return lacking("a cgroup v2 hierarchy");
    };
    let scratch = Scratch::for_user(User::Root);
    let mark = MarkGuard::fresh();
    let mut command = mark.wrapping().cgroup(group.path()).command("unshare", ["-pf", "--mount-proc"]);
    command.arg(example("moored-containment", "contain")).args(["--", "sleep", "600"]);
    command.env("MOORED_RUNTIME_DIR", scratch.join("run")).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut unshare = command.spawn().expect("unshare");
    wait_until("the session is up", DEADLINE, || {
        mark.alive().iter().any(|process| process.comm == "sleep").then_some(())
    });
    let owner = mark.alive().into_iter().find(|process| process.comm == "contain").expect("an owner");
    assert!(send(&ProcessIdentity::of(owner.pid).expect("it lives"), Signal::KILL));
    unshare.wait().expect("our child");
    mark.wait_until_none(DEADLINE).expect("the kernel has ended the namespace");
    assert_eq!(
        (group.leaves().len(), records(&scratch.join("run")).len()),
        (1, 1),
        "nobody was left to clean up"
    );
    sweep_as(User::Root, &scratch.join("run"));
    assert_eq!((group.leaves().len(), records(&scratch.join("run")).len()), (0, 0));
}
