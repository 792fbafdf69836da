//! The client goes away: S01 to S09.

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use moored_containment::ProcessIdentity;
use moored_testkit::{User, bin, wait::wait_for_file};
use rustix::process::Signal;
use serde_json::json;

use crate::common::client::Client;
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::common::{AFTER_ANYTHING, AFTER_EOF, AFTER_TERM, DEADLINE, send};

/// Ends at neither EOF nor SIGTERM, and neither do those that it starts.
pub(crate) const STUBBORN: [&str; 7] =
    ["--ignore-eof", "--ignore-term", "--tree", "3", "--tree-ignores-term", "--daemon", "--clean-daemon"];

// === S01: SIGKILL of the client, and a server that ignores EOF ===

fn s01(client: Client) {
    for scene in Scene::all() {
        let mut playing = client.play(scene.misbehave(["--ignore-eof", "--grandchild"]));
        playing.assert_echo("before");
        playing.kill_client();
        playing.assert_gone_within(AFTER_ANYTHING);
        let causes = playing.scene.end_causes();
        assert!(causes == [json!("client-gone")] || causes == [json!("client-eof")], "{causes:?}");
    }
}

#[test]
fn s01_a_killed_client_leaves_nothing() {
    Client::OWN.into_iter().for_each(s01);
}

#[test]
fn s01_a_killed_typescript_client_leaves_nothing_needs_node() {
    s01(Client::TypeScript);
}

#[test]
fn s01_a_killed_python_client_leaves_nothing_needs_python() {
    s01(Client::Python);
}

/// The whole bound, for the worst there is.
#[test]
fn s01_a_killed_client_leaves_nothing_of_the_most_stubborn() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.misbehave(STUBBORN));
        playing.kill_client();
        playing.assert_gone_within(AFTER_EOF);
    }
}

// === S02: a chain of wrappers ===

#[test]
fn s02_a_chain_of_shells_goes_with_the_client() {
    for client in Client::OWN {
        for scene in Scene::all() {
            let mut playing = client.play(scene.hasty().misbehave(["--wrap-shell", "--ignore-eof"]));
            playing.kill_client();
            playing.assert_gone_within(AFTER_ANYTHING);
        }
    }
}

// === S03: a polite close that signals the direct child only ===

fn s03(client: Client) {
    for scene in Scene::all() {
        let mut playing = client.play(scene.misbehave(["--wrap-shell", "--ignore-eof", "--own-group"]));
        playing.order("close");
        playing.event_named("closed");
        playing.exit();
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}

#[test]
fn s03_a_polite_close_ends_what_is_behind_the_wrapper() {
    Client::OWN.into_iter().for_each(s03);
}

#[test]
fn s03_the_typescript_sdks_close_ends_what_is_behind_the_wrapper_needs_node() {
    s03(Client::TypeScript);
}

#[test]
fn s03_the_python_sdks_close_ends_what_is_behind_the_wrapper_needs_python() {
    s03(Client::Python);
}

/// The SDKs' own ladder ends in a SIGKILL of moored, 4 s after EOF: just when ours would have come to its end.
fn s03_stubborn(client: Client) {
    for scene in Scene::all() {
        let mut playing = client.play(scene.misbehave(STUBBORN));
        playing.holders();
        playing.order("close");
        playing.event_named("closed");
        playing.exit();
        playing.assert_all_dead_within(AFTER_ANYTHING);
    }
}

#[test]
fn s03_the_typescript_sdks_close_ends_the_most_stubborn_needs_node() {
    s03_stubborn(Client::TypeScript);
}

#[test]
fn s03_the_python_sdks_close_ends_the_most_stubborn_needs_python() {
    s03_stubborn(Client::Python);
}

/// A server that ends at EOF is left to do so, and its exit is the session's.
#[test]
fn s03_a_good_server_ends_by_itself() {
    for scene in Scene::all() {
        let mut playing =
            Client::Pipes.play(scene.misbehave(["--die-on-eof-after", "300", "--exit-code", "7"]));
        playing.order("close");
        assert_eq!(playing.event_named("closed")["code"], 7, "{}", playing.words());
        playing.assert_gone_within(AFTER_EOF);
    }
}

/// Three rungs with their patience: the bound holds from the end of input on.
#[test]
fn s03_the_bound_after_eof_holds_for_the_most_stubborn() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.misbehave(STUBBORN));
        playing.order("close");
        let took = playing.assert_gone_within(AFTER_EOF);
        assert!(
            took >= Duration::from_millis(3900),
            "2 s after EOF and 2 s after SIGTERM are promised: {took:?}"
        );
    }
}

// === S04: a terminal that is closed ===

#[test]
fn s04_a_closed_terminal_ends_it_all() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--ignore-eof", "--daemon", "--own-session-child"]);
        // `script` makes the terminal; moored is in the foreground on it, and the server in a session of its own.
        let words = scene.argv().iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>();
        let mut command = scene.command("script", ["-qec", &words.join(" "), "/dev/null"]);
        let mut script = command.stdin(std::process::Stdio::piped()).spawn().expect("script");
        wait_for_file(&scene.ready_file(), DEADLINE);
        let began = Instant::now();
        assert!(send(&ProcessIdentity::of(script.id()).expect("our child"), Signal::KILL));
        script.wait().expect("our child");
        scene.assert_clean();
        assert!(began.elapsed() <= AFTER_ANYTHING, "{:?}", began.elapsed());
    }
}

#[test]
fn s04_sighup_ends_it_like_sigterm() {
    for signal in [Signal::HUP, Signal::INT] {
        for scene in Scene::all() {
            let mut playing = Client::Pipes.play(scene.misbehave(["--ignore-eof", "--daemon"]));
            let moored = playing.holders().moored;
            playing.send(&moored, signal);
            playing.assert_only_client_within(AFTER_TERM);
        }
    }
}

// === S05: a client that exits without teardown ===

fn s05(client: Client) {
    for scene in Scene::all() {
        let mut playing = client.play(scene.misbehave(["--ignore-eof", "--tree", "5"]));
        playing.assert_echo("the last response");
        playing.order("exit");
        assert_eq!(playing.exit().code(), Some(0));
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}

#[test]
fn s05_a_client_that_just_exits_leaves_nothing() {
    Client::OWN.into_iter().for_each(s05);
}

#[test]
fn s05_a_typescript_client_that_just_exits_leaves_nothing_needs_node() {
    s05(Client::TypeScript);
}

#[test]
fn s05_a_python_client_that_just_exits_leaves_nothing_needs_python() {
    s05(Client::Python);
}

// === S06: SIGTERM is trapped ===

#[test]
fn s06_a_trapped_sigterm_is_followed_by_sigkill() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.misbehave(STUBBORN));
        let moored = playing.holders().moored;
        playing.send(&moored, Signal::TERM);
        let took = playing.assert_only_client_within(AFTER_TERM);
        assert!(took >= Duration::from_millis(1900), "2 s after SIGTERM are promised: {took:?}");
    }
}

#[test]
fn s06_sigterm_is_passed_on_at_once() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.misbehave(["--ignore-eof", "--tree", "3"]));
        let moored = playing.holders().moored;
        playing.send(&moored, Signal::TERM);
        let took = playing.assert_only_client_within(AFTER_TERM);
        assert!(took < Duration::from_millis(1000), "all of them end at SIGTERM: {took:?}");
    }
}

// === S07: a busy loop after EOF ===

#[test]
fn s07_a_server_that_spins_after_eof_is_ended() {
    for scene in Scene::all() {
        let mut playing = Client::Sockets.play(scene.hasty().misbehave(["--spin-after-eof"]));
        playing.kill_client();
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}

// === S08: pipes that nobody drains ===

/// The client never reads stderr: here it is a pipe that we hold and leave alone.
#[test]
fn s08_a_flood_on_stderr_does_not_block_the_call() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--block-stderr", "1000000"]);
        let mut wire = Wire::start(scene.run_command());
        wire.initialize();
        wire.assert_echo(1, "through");
        let (status, _) = wire.finish();
        assert_eq!(status.code(), Some(0));
        scene.assert_clean();
    }
}

/// The client does not read stdout either, and the server is blocked in a write when it goes.
#[test]
fn s08_a_server_blocked_in_a_write_is_ended() {
    for scene in Scene::all() {
        let mut playing =
            Client::Pipes.play_unanswered(scene.hasty().misbehave(["--block-stdout", "--ignore-eof"]));
        playing.kill_client();
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}

#[test]
fn s08_a_client_that_reads_nothing_can_still_close() {
    for scene in Scene::all() {
        let scene = scene.hasty().misbehave(["--block-stdout", "--ignore-eof"]);
        let (unread, theirs) = std::io::pipe().expect("a pipe");
        let mut command = scene.run_command();
        let mut child = command.stdin(std::process::Stdio::piped()).stdout(theirs).spawn().expect("moored");
        // It keeps a copy of the writing end.
        drop(command);
        wait_for_file(&scene.ready_file(), DEADLINE);
        child.stdin = None;
        let began = Instant::now();
        let ended = || child.try_wait().expect("our child");
        moored_testkit::wait_until("moored has ended", AFTER_EOF, ended);
        assert!(began.elapsed() <= AFTER_EOF, "{:?}", began.elapsed());
        scene.assert_clean();
        drop(unread);
    }
}

// === S09: somebody else holds the writing end ===

#[test]
fn s09_the_clients_death_is_seen_though_a_sibling_holds_the_pipe() {
    for client in Client::OWN {
        for user in User::available() {
            let scene = Scene::new(user).hasty().misbehave(["--ignore-eof"]);
            // A name of its own, by which it is told apart.
            let sibling = scene.scratch.join("sibling");
            symlink(bin("misbehave"), &sibling).expect("a link");
            let mut playing = client.play(scene);
            playing.order(&format!("sibling {} __sleep", sibling.display()));
            let pid = playing.event()["pid"].as_u64().expect("a pid");
            playing.kill_client();
            let is_sibling = |survivor: &moored_testkit::Survivor| u64::from(survivor.pid) == pid;
            playing.assert_gone_but(AFTER_ANYTHING, is_sibling);
            playing.assert_no_files();
            assert!(
                playing.scene.mark.alive().iter().any(is_sibling),
                "the sibling held the pipe all the time"
            );
            assert_eq!(playing.scene.end_causes(), [json!("client-gone")]);
        }
    }
}
