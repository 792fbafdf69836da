//! Too few files, too few processes, files that may not grow.

use std::ffi::OsString;
use std::fs::File;

use moored_containment::{Command, StartError, Stdio};
use moored_testkit::{User, example};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::assert_clean;
use crate::common::belongings::Belongings;
use crate::common::hold::{Hold, cells};
use crate::common::part::{Part, hold, stage};
use crate::common::short;

fn cat() -> Command {
    let mut command = Command::new("cat");
    command.stdin(Stdio::Pipe).stdout(Stdio::Pipe).stderr(Stdio::Pipe).ladder(short());
    hold().apply(&mut command);
    command
}

/// So many numbers are left to this process, and not one more.
fn hoard_all_files_but(free: usize) -> Vec<File> {
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    files.truncate(files.len() - free);
    files
}

#[test]
fn a_host_without_files_is_told_so_and_nothing_is_left() {
    for cell in cells() {
        let part = Part::of("shortages::part_that_runs_out_of_files", cell);
        part.play_under(part.wrap().nofile(128));
        assert_clean(&part);
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_that_runs_out_of_files() {
    if stage().is_none() {
        return;
    }
    let mut started = 0;
    // The first attempts are those of a process that has never started a session.
    for free in 0..=40 {
        let before = Belongings::now();
        let hoard = hoard_all_files_but(free);
        let spawned = cat().spawn();
        drop(hoard);
        match spawned {
            Ok(mut server) => {
                let report = server.end(short()).expect("a report");
                assert!(report.verified, "{free}: {report:?}");
                started += 1;
            }
            Err(error) => {
                assert!(matches!(error, StartError::OutOfFiles { .. }), "{free} free: {error:?}");
                assert_eq!(started, 0, "{free} are too few, after fewer were enough");
            }
        }
        assert_same(&before, free);
    }
    assert!((5..35).contains(&started), "{started} of 41");
}

#[test]
fn a_runtime_without_files_is_told_so_and_nothing_is_left() {
    for cell in cells() {
        let part = Part::of("shortages::part_whose_runtime_runs_out_of_files", cell);
        part.play_under(part.wrap().nofile(128));
        assert_clean(&part);
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_whose_runtime_runs_out_of_files() {
    if stage().is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for free in 0..=40 {
            let before = Belongings::now();
            let hoard = hoard_all_files_but(free);
            let spawned = cat().spawn_async();
            drop(hoard);
            match spawned {
                Ok(mut server) => assert!(server.end(short()).await.expect("a report").verified),
                Err(error) => {
                    assert!(matches!(error, StartError::OutOfFiles { .. }), "{free} free: {error:?}")
                }
            }
            assert_same(&before, free);
        }
    });
}

/// What an attempt left shows at once, not only later: whoever was told of a failure may look.
#[track_caller]
fn assert_same(before: &Belongings, free: usize) {
    let after = Belongings::now();
    assert_eq!(after, *before, "{free} free");
    after.assert_nothing_of_sessions();
}

/// In a user namespace of its own the user's other processes do not count.
#[test]
fn a_user_without_processes_is_told_so_and_nothing_is_left_needs_unshare() {
    for cell in cells().into_iter().filter(|cell| cell.0 == User::Plain && cell.1 != Hold::Strict) {
        let part = Part::of("shortages::part_that_runs_out_of_processes", cell);
        let argv = [vec!["-Uc".to_owned()], part.argv()].concat();
        let played = part.set(part.wrap().command("unshare", argv)).output().expect("unshare");
        let words = String::from_utf8_lossy(&played.stdout);
        assert!(played.status.success() && words.contains("1 passed"), "{cell:?}: {played:?}");
        assert_clean(&part);
    }
}

#[test]
#[ignore = "a part that another test plays in a user namespace"]
fn part_that_runs_out_of_processes() {
    if stage().is_none() {
        return;
    }
    // The folder of records is made, and what else is there once and for all.
    drop(cat().spawn().expect("cat"));
    let whole = getrlimit(Resource::Nproc);
    let mut outcomes = Vec::new();
    for limit in 1..=12 {
        let before = Belongings::now();
        setrlimit(Resource::Nproc, Rlimit { current: Some(limit), ..whole }).expect("a lower limit");
        let spawned = cat().spawn();
        setrlimit(Resource::Nproc, whole).expect("the old limit");
        outcomes.push(spawned.is_ok());
        match spawned {
            Ok(mut server) => assert!(server.end(short()).expect("a report").verified),
            Err(error) => {
                assert!(matches!(error, StartError::OutOfProcesses { .. }), "{limit}: {error:?}");
                assert!(error.to_string().contains("out of processes"), "{error}");
            }
        }
        assert_same(&before, usize::try_from(limit).expect("small"));
    }
    // At each of the three forks: the outer guardian's, the inner one's, the server's.
    assert!(outcomes.starts_with(&[false, false, false]) && outcomes.ends_with(&[true]), "{outcomes:?}");
}

/// To write beyond the limit would be to die of SIGXFSZ, so it is looked at first.
#[test]
fn f13_a_host_whose_files_may_not_grow_is_told_so_and_nothing_is_left() {
    for cell in cells() {
        let part = Part::of("shortages::part_whose_files_may_not_grow", cell);
        part.play();
        assert_clean(&part);
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_whose_files_may_not_grow() {
    if stage().is_none() {
        return;
    }
    let whole = getrlimit(Resource::Fsize);
    let mut outcomes = Vec::new();
    for limit in [0, 1, 4096, 65_536, 131_071, 160_000, 1 << 20] {
        let before = Belongings::now();
        setrlimit(Resource::Fsize, Rlimit { current: Some(limit), ..whole }).expect("a lower limit");
        let spawned = cat().spawn();
        setrlimit(Resource::Fsize, whole).expect("the old limit");
        outcomes.push(spawned.is_ok());
        match spawned {
            Ok(mut server) => assert!(server.end(short()).expect("a report").verified),
            Err(error) => {
                let StartError::FileSizeLimit { limit: told, needed, .. } = error else {
                    panic!("{error:?}")
                };
                assert!(told == limit && needed > limit, "{limit}: {error}");
                assert!(error.to_string().contains("ulimit -f"), "{error}");
            }
        }
        // The image is opened once and stays open.
        if limit < 131_072 {
            assert_same(&before, usize::try_from(limit).expect("small"));
        }
    }
    assert!(outcomes.starts_with(&[false; 5]) && outcomes.ends_with(&[true]), "{outcomes:?}");
}

#[test]
fn f13_a_command_whose_files_may_not_grow_says_so() {
    for user in User::available() {
        let part = Part::new("", user);
        let contain = example("moored-containment", "contain").into_os_string();
        let argv = ["-c", r#"ulimit -f 4; exec "$@""#, "sh"].map(OsString::from).into_iter();
        let argv = argv.chain([contain]).chain(["--no-cgroup", "--", "true"].map(OsString::from));
        let ran = part.set(part.wrap().command("sh", argv)).output().expect("sh");
        let words = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(125), "{user:?}: {ran:?}");
        assert!(words.contains("files may have 4096 bytes at most") || words.contains("2048"), "{words}");
        assert!(words.contains("ulimit -f"), "{words}");
        assert_clean(&part);
    }
}

/// `/proc` without `/proc/sys`: there is no boot to be read, and the reason is the mount. Root makes the namespace for a plain
/// user too; a plain user alone makes its own.
#[test]
fn f13_a_proc_that_shows_processes_only_is_named_needs_unshare() {
    for user in User::available() {
        let part = Part::new("", user);
        let how = if User::current() == User::Root { "-mpf" } else { "-Urmpf" };
        let script = r#"mount -t proc -o subset=pid proc /proc && exec "$@""#;
        let contain = example("moored-containment", "contain");
        let contain = part.wrap().command(contain, ["--no-cgroup", "--", "true"]);
        let mut command = part.mark.wrap("unshare", [how, "--kill-child", "sh", "-c", script, "sh"]);
        command.arg(contain.get_program()).args(contain.get_args());
        let ran = part.set(command).output().expect("unshare");
        let words = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(125), "{user:?}: {ran:?}");
        assert!(words.contains("subset=pid") && words.contains("boot_id"), "{user:?}: {words}");
    }
}
