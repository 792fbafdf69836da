//! F2, F10: clients that are hard to look at, with a sibling that holds the pipe, so that only their death can tell.

use std::fs;
use std::process::{Child, Stdio};
use std::time::Instant;

use moored_containment::ProcessIdentity;
use moored_testkit::{User, wait::wait_for_file, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::scene::Scene;
use crate::common::{AFTER_ANYTHING, DEADLINE, send};
use crate::seen::ps;

/// A client that starts a sibling and `moored run`, writes their pids to the file `pids`, and stays. `leaderless`: its first
/// thread ends before (60 is exit of one thread). `hidden`: it is not dumpable (157 is prctl, 4 is PR_SET_DUMPABLE), so that a
/// plain user cannot read its files.
const CLIENT: &str = r#"
use threads;
my ($how, @argv) = @ARGV;
syscall(157, 4, 0, 0, 0, 0) if $how eq 'hidden';
$^F = 1000;
sub has_leader { open(my $stat, '<', "/proc/$$/stat"); <$stat> !~ /\) Z/ }
sub live {
    if ($how eq 'leaderless') { select(undef, undef, undef, .002) while has_leader() }
    pipe(my $reader, my $writer);
    my $sibling = fork;
    if (!$sibling) { close $reader; exec 'sleep', '600' }
    my $moored = fork;
    if (!$moored) { open(STDIN, '<&', $reader); close $reader; close $writer; exec @argv }
    close $reader;
    open(my $pids, '>', 'pids.new'); print $pids "$moored $sibling"; close $pids; rename 'pids.new', 'pids';
    sleep 600;
}
if ($how eq 'leaderless') { threads->create(\&live); syscall(60, 0) }
live();
"#;

struct Odd {
    scene: Scene,
    child: Child,
    sibling: u32,
}

/// A client of that kind whose server is up.
fn start(user: User, how: &str) -> Odd {
    let scene = Scene::new(user).hasty().misbehave(["--ignore-eof"]);
    let words = ["-e".into(), CLIENT.into(), how.into()].into_iter().chain(scene.argv());
    let child =
        scene.command("perl", words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("perl");
    wait_for_file(&scene.ready_file(), DEADLINE);
    wait_for_file(&scene.scratch.join("pids"), DEADLINE);
    let pids = fs::read_to_string(scene.scratch.join("pids")).expect("two numbers");
    let sibling = pids.split(' ').nth(1).and_then(|pid| pid.parse().ok()).expect("a number");
    Odd { scene, child, sibling }
}

impl Odd {
    /// Kills the client: all that is its own must be gone, and the sibling holds the pipe all the time.
    fn assert_death_is_seen(mut self) {
        let client = ProcessIdentity::of(self.child.id()).expect("our child");
        let killed = Instant::now();
        assert!(send(&client, Signal::KILL));
        self.child.wait().expect("our child");
        let left =
            || self.scene.mark.alive().into_iter().filter(|one| one.pid != self.sibling).collect::<Vec<_>>();
        while !left().is_empty() {
            assert!(killed.elapsed() < AFTER_ANYTHING, "{:?}: {:#?}", self.scene.user, left());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(self.scene.mark.alive().iter().any(|one| one.pid == self.sibling), "it held the pipe");
        assert_eq!(self.scene.end_causes(), [json!("client-gone")]);
    }
}

/// What `ps` and `inspect` think of the only server.
fn judged(scene: &Scene) -> Value {
    wait_until("it is seen", DEADLINE, || ps(scene).into_iter().next())
}

#[test]
fn f02_the_death_of_a_client_whose_first_thread_has_ended_is_seen() {
    for user in User::available() {
        start(user, "leaderless").assert_death_is_seen();
    }
}

#[test]
fn f02_the_death_of_a_client_whose_files_cannot_be_read_is_seen() {
    for user in User::available() {
        start(user, "hidden").assert_death_is_seen();
    }
}

/// The same kind of client without any of this: the stage itself is right.
#[test]
fn f02_the_death_of_an_ordinary_client_is_seen() {
    for user in User::available() {
        let client = start(user, "ordinary");
        let row = judged(&client.scene);
        assert!(row["reason"].as_str().is_some_and(|why| why.starts_with("stdin held by perl")), "{row}");
        client.assert_death_is_seen();
    }
}

#[test]
fn f02_no_holder_is_claimed_that_could_not_be_seen() {
    for user in User::available() {
        let client = start(user, "hidden");
        let row = judged(&client.scene);
        let reason = row["reason"].as_str().expect("a reason");
        // Root can read all files.
        let expected = if user == User::Root { "stdin held by " } else { "started by " };
        assert!(reason.starts_with(expected), "{user:?}: {row}");
        assert_eq!(row["verdict"], "attached", "{row}");
        client.assert_death_is_seen();
    }
}

#[test]
fn f10_a_live_client_whose_first_thread_has_ended_is_not_called_gone() {
    for user in User::available() {
        let client = start(user, "leaderless");
        let row = judged(&client.scene);
        assert_eq!(row["verdict"], "attached", "{user:?}: {row}");
        assert!(row["reason"].as_str().is_some_and(|why| why.starts_with("stdin held by perl")), "{row}");
        client.assert_death_is_seen();
    }
}
