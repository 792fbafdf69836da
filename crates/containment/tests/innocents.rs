//! Nobody who is not of the session is ever signalled, adopted or robbed of a child.

#![expect(
    clippy::disallowed_methods,
    reason = "hosts and strangers under a mark, which ends what is left of them"
)]

#[allow(dead_code, reason = "each target uses its part of it")]
mod common;

use std::collections::BTreeSet;
use std::fs;
use std::process::{self, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use common::ending::Ending;
use common::hold::{Cell, Hold, cells, cells_with};
use common::host::{Host, Plan};
use common::part::{Part, stage};
use common::traces::{assert_nothing_left, names};
use common::{DEADLINE, send, short};
use moored_containment::{
    Command, EndReason, EndReport, Ladder, ProcessIdentity, RuntimeDir, ServerExit, sweep,
};
use moored_testkit::innocents::Group;
use moored_testkit::{Bystander, MarkGuard, User, bin, example, lacking, wait_until};
use rustix::process::{Pid, Signal, WaitOptions, child_subreaper, kill_process_group, wait};

/// Takes SIGKILL to be gone, of a kind that every layer can deliver.
const STUBBORN: [&str; 7] =
    ["--ignore-eof", "--ignore-term", "--tree-ignores-term", "--tree", "9", "--daemon", "--clean-daemon"];

// === nobody is signalled ===

fn all_alive(host: &Host) -> BTreeSet<(u32, u64)> {
    host.mark.alive().iter().map(|s| (s.pid, s.start_ticks)).collect()
}

/// Every ending of a session, with strangers of the same user all around it and another session beside it.
fn no_ending_touches_an_innocent(cell: Cell, strangers: usize) {
    let mut crowd: Vec<_> = (0..strangers).map(|_| Bystander::spawn_as(cell.0, Group::Own)).collect();
    let mut other = Plan::new(cell, Ending::End).misbehave(STUBBORN).start();
    let others = all_alive(&other);
    assert!(others.len() > 12, "{others:?}");
    for ending in Ending::ALL {
        let mut host = Plan::new(cell, ending).misbehave(STUBBORN).start();
        crowd.push(Bystander::spawn_as(cell.0, Group::Of(host.pid())));
        host.bring_end();
        assert_nothing_left(&mut host);
        for stranger in &mut crowd {
            let said = stranger.testimony();
            assert_eq!(said, Ok(()), "{cell:?} {ending:?}: stranger {}", stranger.pid());
        }
        assert_eq!(all_alive(&other), others, "{cell:?} {ending:?}: the other session");
    }
    other.bring_end();
    assert_nothing_left(&mut other);
    crowd.iter_mut().for_each(Bystander::assert_untouched);
}

#[test]
fn no_ending_in_the_loop_touches_an_innocent() {
    cells_with(Hold::Loop).into_iter().for_each(|cell| no_ending_touches_an_innocent(cell, 5));
}

#[test]
fn no_ending_in_a_leaf_touches_an_innocent() {
    cells_with(Hold::Cgroup).into_iter().for_each(|cell| no_ending_touches_an_innocent(cell, 5));
}

/// Here the blow is `kill(-1)`, and only the kernel keeps it from hitting everybody that the user has.
#[test]
fn no_sealed_ending_touches_an_innocent() {
    cells_with(Hold::Sealed).into_iter().for_each(|cell| no_ending_touches_an_innocent(cell, 40));
}

#[test]
fn no_strict_ending_touches_an_innocent() {
    cells_with(Hold::Strict).into_iter().for_each(|cell| no_ending_touches_an_innocent(cell, 5));
}

/// As Python's SDK does it. The guardians are in sessions of their own, so they live to end the tree; and what else is
/// in the group was signalled by the killer alone.
#[test]
fn a_killed_group_takes_the_tree_with_it_and_nobody_else() {
    for cell in cells() {
        let mut crowd: Vec<_> = (0..5).map(|_| Bystander::spawn_as(cell.0, Group::Own)).collect();
        let mut host = Plan::new(cell, Ending::HostKilled).misbehave(STUBBORN).start();
        let group = Pid::from_raw(host.pid().cast_signed()).expect("a pid");
        kill_process_group(group, Signal::KILL).expect("a group of ours");
        assert_nothing_left(&mut host);
        crowd.iter_mut().for_each(Bystander::assert_untouched);
    }
}

// === numbers that were given out again ===

/// The session's processes are gone, and strangers have their numbers now.
#[test]
fn a_recycled_number_is_nobody_of_ours_needs_unshare() {
    let part = Part::new("part_with_recycled_numbers", User::current());
    // Whoever is not root keeps the right to say which number is next.
    let how: &[&str] = if User::current() == User::Root { &["-pf"] } else { &["-Ucpf", "--keep-caps"] };
    // The shell is the namespace's first process: it collects what falls to it, and takes all of it along in the end.
    // There is no mark around it, for a mark inside another would have to be a lower one.
    let mut command = process::Command::new("unshare");
    command.args(how).args(["--kill-child", "--mount-proc", "sh", "-c", r#""$@"; exit $?"#, "sh"]);
    command.args(part.argv());
    let played = part.set(command).output().expect("unshare");
    let words = String::from_utf8_lossy(&played.stdout);
    assert!(played.status.success() && words.contains("1 passed"), "{played:?}");
}

#[test]
#[ignore = "a part that another test plays in a PID namespace"]
fn part_with_recycled_numbers() {
    if stage().is_none() {
        return;
    }
    if !fs::exists("/proc/sys/kernel/ns_last_pid").expect("/proc") {
        return lacking("a kernel with ns_last_pid");
    }
    // A user other than root in this namespace is nobody we can become.
    let cell = (User::current(), Hold::Loop);
    // None of them stays in the server's session: a session's number is not given out while anybody is in it.
    let escapes = ["--ignore-eof", "--daemon", "--clean-daemon", "--own-session-child"];
    let mut host = Plan::new(cell, Ending::HostKilled).misbehave(escapes).start();
    let who = host.who();
    let server = ProcessIdentity::of(who.server).expect("it lives");
    let ours = [who.host, who.outer, who.inner, server];
    host.kill_all_of_ours();
    host.exit();
    for dead in ours {
        wait_until("it is gone and collected", DEADLINE, || ProcessIdentity::of(dead.pid).err());
    }
    let orphans = host.mark.alive();
    assert_eq!(orphans.len(), 3, "{orphans:?}");

    let mut strangers: Vec<_> = ours.iter().map(|dead| bystander_with_number(dead.pid)).collect();
    for dead in ours {
        assert!(!dead.is_alive().expect("/proc"), "{dead} is somebody else now");
        assert!(ProcessIdentity::of(dead.pid).is_ok_and(|now| now != dead));
    }
    let folder = RuntimeDir::at(host.runtime()).expect("our folder");
    let swept = sweep(&folder).expect("a folder");
    let [session] = &swept.sessions[..] else { panic!("{swept:?}") };
    let ended: BTreeSet<_> = session.ended.iter().map(|ended| ended.pid).collect();
    assert_eq!(ended, orphans.iter().map(|orphan| orphan.pid).collect());
    assert_eq!(session.survivors, []);
    strangers.iter_mut().for_each(Bystander::assert_untouched);
    assert_nothing_left(&mut host);
}

/// Whoever is started next has the number behind the last one, if nobody else was quicker.
fn bystander_with_number(number: u32) -> Bystander {
    wait_until("a stranger with that number", DEADLINE, || {
        fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).expect("our namespace");
        Some(Bystander::spawn()).filter(|stranger| stranger.pid() == number)
    })
}

// === the host is left as it was ===

/// A subreaper would be handed the orphans of its other children.
#[test]
fn the_host_adopts_nobody() {
    let mark = MarkGuard::fresh();
    let mut server = Command::new("cat").stdin(moored_containment::Stdio::Pipe).spawn().expect("cat");
    assert_eq!(child_subreaper().expect("prctl"), None);
    let mut shell = mark.wrap("sh", ["-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]);
    let said = shell.stdin(Stdio::null()).output().expect("sh");
    let orphan: u32 = String::from_utf8_lossy(&said.stdout).trim().parse().expect("a pid");
    let parent = mark.alive().into_iter().find(|s| s.pid == orphan).map(|s| s.ppid);
    assert!(parent.is_some_and(|parent| parent != process::id()), "{parent:?}");
    server.end(Ladder::default()).expect("a report");
    assert_eq!(child_subreaper().expect("prctl"), None);
}

#[test]
fn the_host_gets_every_exit_of_its_own_children_and_nobody_elses() {
    User::available().into_iter().for_each(|user| Part::new("part_with_children_of_its_own", user).play());
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_with_children_of_its_own() {
    let Some(stage) = stage() else { return };
    let own =
        |code: u8| process::Command::new("sh").args(["-c", &format!("exit {code}")]).spawn().expect("sh");
    let mut early: Vec<_> = (0..20).map(|code| (code, own(code))).collect();
    let mut tree = Command::new(stage.join("misbehave"));
    tree.args(["--tree", "9", "--daemon", "--clean-daemon", "--exit-now", "3"]);
    tree.stdin(moored_containment::Stdio::Pipe).ladder(short());
    for round in 0..10 {
        let mut server = tree.spawn().expect("a server");
        let mut during = own(round + 100);
        let report = server.wait_ended().expect("a report");
        assert_eq!(report.status, Some(ServerExit::Code(3)));
        assert_eq!(during.wait().expect("our child").code(), Some(i32::from(round) + 100));
        assert_eq!(own(round + 200).wait().expect("our child").code(), Some(i32::from(round) + 200));
        drop(server);
    }
    let children: BTreeSet<_> = own_children().into_iter().collect();
    assert_eq!(children, early.iter().map(|(_, child)| child.id()).collect(), "ours, dead, and no others");
    for (code, child) in &mut early {
        assert_eq!(child.wait().expect("our child").code(), Some(i32::from(*code)));
    }
    assert!(own_children().is_empty());
}

/// Zombies among them.
fn own_children() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc");
    let lists = tasks.map(|task| fs::read_to_string(task.expect("a thread").path().join("children")));
    let lists: Vec<_> = lists.map(|list| list.expect("a list")).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).map(|pid| pid.parse().expect("a pid")).collect()
}

/// A host that collects every child itself, as a shell or an init does.
#[test]
fn a_host_that_collects_every_child_still_gets_its_reports() {
    User::available().into_iter().for_each(|user| Part::new("part_that_collects_every_child", user).play());
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_that_collects_every_child() {
    let Some(stage) = stage() else { return };
    let (over, collected) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                match wait(WaitOptions::empty()) {
                    Ok(Some(_)) => drop(collected.fetch_add(1, Ordering::SeqCst)),
                    // There is none at this moment.
                    _ => std::thread::yield_now(),
                }
            }
        });
        for round in 0..20 {
            let mut tree = Command::new(stage.join("misbehave"));
            tree.args(["--tree", "5", "--daemon"]).stdin(moored_containment::Stdio::Pipe).ladder(short());
            let mut server = tree.spawn().expect("a server");
            let report = match round % 3 {
                0 => server.end(short()),
                1 => server.end(Ladder::kill()),
                _ => {
                    assert!(send(&server.guardians()[0], Signal::KILL));
                    server.wait_ended()
                }
            };
            let report = report.expect("a report");
            assert!(report.verified && report.survivors.is_empty(), "{report:?}");
        }
        over.store(true, Ordering::SeqCst);
    });
    assert!(collected.load(Ordering::SeqCst) > 0, "the loop was there first at least once");
    assert_eq!(names(&stage.join("run")), [] as [std::path::PathBuf; 0]);
}

/// What is ignored is inherited: the guardians must be able to wait all the same.
#[test]
fn a_host_that_ignores_its_children_still_gets_its_report() {
    for (user, hold) in cells() {
        let part = Part::new("", user);
        let contain = example("moored-containment", "contain");
        let mut argv =
            vec!["-c".into(), r#"trap "" CHLD; exec "$@""#.into(), "sh".into(), contain.into_os_string()];
        argv.extend(hold.contain_options().iter().map(Into::into));
        argv.extend(["--kill-after", "100ms"].map(Into::into));
        argv.extend(["--".into(), bin("misbehave").into_os_string()]);
        argv.extend(["--tree", "5", "--daemon", "--exit-now", "3"].map(Into::into));
        let ran = part.set(part.wrap().command("sh", argv)).output().expect("sh");
        assert_eq!(ran.status.code(), Some(3), "{user:?} {hold:?}: {ran:?}");
        let report: EndReport = serde_json::from_slice(&ran.stderr).expect("a report");
        assert_eq!((report.reason, report.verified), (EndReason::ServerExited, true), "{user:?} {hold:?}");
        assert_eq!(part.mark.alive(), []);
    }
}
