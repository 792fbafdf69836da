//! The command that is run when the tree is gone.

use std::fs;
use std::time::{Duration, Instant};

use moored_containment::{Command, Ladder, ProcessIdentity, ServerExit, Stdio, StepName};
use moored_testkit::{User, read_pids};

use crate::common::ending::Ending;
use crate::common::hold::cells;
use crate::common::host::Plan;
use crate::common::part::{Part, hold, stage};
use crate::common::short;
use crate::common::traces::assert_nothing_left;

/// Counts who is alive of the server's tree: `misbehave` and all of its own have the scratch folder in their arguments.
pub(crate) const COUNT_THE_LIVING: &str = r#"n=0
    for exe in $(ls -l /proc/[0-9]*/exe 2>/dev/null | sed -n 's:.* \(/proc/[0-9]*\)/exe -> .*/misbehave$:\1:p'); do
        grep -qs "$1" "$exe/cmdline" && n=$((n + 1))
    done
    echo "$n" >>"$1/on_end"; exit 5"#;

/// The options that make `promise_host` run a script at the end, with the scratch folder in `$1`.
pub(crate) fn on_end(plan: Plan, script: &str) -> Plan {
    let folder = plan.scratch().path().display().to_string();
    let argv = ["sh", "-c", script, "sh", &folder].map(str::to_owned);
    plan.options(argv.into_iter().flat_map(|arg| ["--on-end".to_owned(), arg]))
}

#[test]
fn on_end_runs_once_and_after_the_last_of_the_tree() {
    for cell in cells() {
        for ending in Ending::ALL {
            let tree = ["--tree", "5", "--tree-ignores-term", "--ignore-term", "--daemon", "--clean-daemon"];
            let mut host = on_end(Plan::new(cell, ending), COUNT_THE_LIVING).misbehave(tree).start();
            host.bring_end();
            assert_nothing_left(&mut host);
            let counted = fs::read_to_string(host.scratch.join("on_end")).unwrap_or_default();
            assert_eq!(counted, "0\n", "{cell:?} {ending:?}");
            if let Some(report) = host.report() {
                assert_eq!(report.on_end, Some(ServerExit::Code(5)), "{cell:?} {ending:?}");
                assert_eq!(report.steps.last().map(|step| step.name), Some(StepName::OnEnd), "{report:?}");
            }
        }
    }
}

#[test]
fn an_on_end_that_hangs_is_ended_with_all_that_it_started() {
    for cell in cells() {
        let part = Part::of("on_end::part_whose_on_end_hangs", cell);
        part.play();
        assert_eq!(part.mark.alive(), []);
        assert!(part.group.as_ref().is_none_or(|group| group.leaves().is_empty()));
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_whose_on_end_hangs() {
    let Some(stage) = stage() else { return };
    let pids = stage.join("pids");
    let hangs = r#"trap "" TERM; echo $$ >>"$1"; sleep 1000 & echo $! >>"$1"
        setsid sh -c 'echo $$ >>"$0"; exec sleep 1000' "$1" & while :; do sleep 1; done"#;
    let mut command = Command::new("cat");
    hold().apply(&mut command);
    command.stdin(Stdio::Pipe).stdout(Stdio::Null).ladder(short());
    command.on_end(["sh", "-c", hangs, "sh"].map(Into::into).iter().chain([&pids.clone().into_os_string()]));
    let mut server = command.on_end_patience(Duration::from_secs(1)).spawn().expect("cat");
    let (ends, began) = (pids.clone(), Instant::now());
    // Their identities, while they are there to be looked at.
    let watcher = std::thread::spawn(move || {
        moored_testkit::wait_until("on_end has started", Duration::from_secs(60), || {
            let pids = read_pids(&ends);
            let all: Vec<_> = pids.into_iter().filter_map(|pid| ProcessIdentity::of(pid).ok()).collect();
            (all.len() == 3).then_some(all)
        })
    });
    let report = server.end(short()).expect("a report");
    let took = began.elapsed();
    assert_eq!(report.on_end, Some(ServerExit::Signal(9)), "{report:?}");
    assert!(report.verified && report.survivors.is_empty(), "{report:?}");
    assert!(took >= Duration::from_secs(1), "it had its patience: {took:?}");
    for process in watcher.join().expect("three processes") {
        assert!(!process.is_alive().expect("/proc"), "{process} is left of on_end");
    }
    assert!(crate::common::traces::names(&stage.join("run")).is_empty());
}

/// It is not the server, and has nothing of the server's: no input, no output, its own environment and session.
#[test]
fn on_end_has_the_owners_environment_and_no_files() {
    let part = Part::new("on_end::part_that_looks_at_on_end", User::current());
    part.play();
    let seen = |what: &str| fs::read_to_string(part.scratch.join(what)).expect("on_end's words");
    assert_eq!(seen("seen.number"), "3\n");
    assert_eq!(seen("seen.files"), "/dev/null\n".repeat(3));
    assert_eq!(seen("seen.env"), "the owner's, and nothing of the server's\n");
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_that_looks_at_on_end() {
    let Some(stage) = stage() else { return };
    let mut command = Command::new("true");
    // The shell's own files, counted when that of the listing is closed again.
    let look = r#"n=0; set -- /proc/$$/fd/*; for fd; do test -L "$fd" && n=$((n + 1)); done; echo $n >"$0.number"
        (readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2 >"$0.files")
        /bin/echo "the ${MOORED_TEST_HOLD:+owner's}, and nothing of ${X:-the server's}" >"$0.env"; exit 0"#;
    command.env("X", "the server's").env_remove("MOORED_TEST_HOLD");
    command.on_end(["sh".into(), "-c".into(), look.into(), stage.join("seen").into_os_string()]);
    let mut server = command.spawn().expect("true");
    let report = server.wait_ended().expect("a report");
    assert_eq!(report.on_end, Some(ServerExit::Code(0)), "{report:?}");
}

#[test]
fn an_on_end_that_is_not_there_is_refused_at_the_start() {
    for program in ["no-such-program-of-ours", "/no/such/program", "./no-such-program"] {
        let mut command = Command::new("true");
        let refused = command.on_end([program]).spawn().expect_err("later there would be nobody to tell");
        assert!(refused.to_string().contains(program), "{refused}");
        assert_eq!(refused.exit_code(), 127, "{refused:?}");
    }
}

#[test]
fn ended_again_it_gives_the_same_report() {
    let mut command = Command::new("cat");
    command.stdin(Stdio::Pipe).stdout(Stdio::Null).on_end(["true"]);
    let mut server = command.spawn().expect("cat");
    let first = server.end(Ladder::default()).expect("a report");
    assert_eq!(server.end(Ladder::kill()).expect("a report"), first);
    assert_eq!(server.wait_ended().expect("a report"), first);
    assert_eq!(server.try_wait().expect("a status"), first.status);
}
