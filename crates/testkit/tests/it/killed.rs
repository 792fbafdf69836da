//! A test that is killed leaves nothing behind, though no guard of it has run.

use std::fs;
use std::process::{Command, Stdio};

use moored_testkit::{Mark, MarkGuard, Scratch, User, bin, wait_until};

use crate::harness::DEADLINE;

const STAGE: &str = "MOORED_TEST_STAGE";
/// A daemon in a session of its own and a tree, all deaf to EOF and SIGTERM.
const SWITCHES: &[&str] = &["--daemon", "--ignore-eof", "--ignore-term", "--tree", "5"];

#[test]
fn what_a_killed_test_started_is_ended() {
    for user in User::available() {
        let scratch = Scratch::for_user(User::current());
        let told = scratch.join("mark");
        let mut part = Command::new(std::env::current_exe().expect("this program"));
        part.args(["killed::part_that_is_killed", "--exact", "--ignored"]).env(STAGE, scratch.path());
        part.env("MOORED_TEST_USER", format!("{user:?}")).stdin(Stdio::null()).stdout(Stdio::null());
        let mut part = part.stderr(Stdio::null()).spawn().expect("this program");
        let mark = wait_until("it has started its server", DEADLINE, || {
            fs::read_to_string(&told).ok()?.parse().ok().map(Mark::of)
        });
        let left = mark.alive().len();
        // Our own unreaped child.
        part.kill().and_then(|()| part.wait()).expect("our child");
        let gone = mark.wait_until_none(DEADLINE);
        drop(mark.guard());
        assert!(left > 6, "{user:?}: {left} are too few to show it");
        assert!(gone.is_ok(), "{user:?}: {gone:?}");
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_that_is_killed() {
    let Some(stage) = std::env::var_os(STAGE).map(std::path::PathBuf::from) else { return };
    let user = std::env::var("MOORED_TEST_USER").expect("set");
    let user = User::available().into_iter().find(|one| format!("{one:?}") == user).expect("a user");
    let (mark, ready) = (MarkGuard::fresh(), Scratch::for_user(user));
    let mut server = mark.wrapping().user(user).command(bin("misbehave"), SWITCHES);
    server.arg("--ready-file").arg(ready.join("ready")).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut server = server.spawn().expect("misbehave");
    wait_until("it is up", DEADLINE, || ready.join("ready").exists().then_some(()));
    fs::write(stage.join("mark.new"), mark.value().to_string()).expect("our stage");
    fs::rename(stage.join("mark.new"), stage.join("mark")).expect("our stage");
    // Until we are killed.
    server.wait().expect("our child");
}
