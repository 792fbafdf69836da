//! S10: SIGKILL of each of moored's own processes, and of two at once. Nobody needs the killed one to clean up.

use moored_containment::ProcessIdentity;
use moored_testkit::{User, lacking};
use rustix::process::Signal;

use crate::client_goes::STUBBORN;
use crate::common::AFTER_ANYTHING;
use crate::common::client::Client;
use crate::common::playing::{Holders, Playing};
use crate::common::scene::{Scene, moored};
use crate::common::wire::Wire;

fn killing(client: Client, who: impl Fn(&Playing, Holders) -> Vec<ProcessIdentity>) {
    for scene in Scene::all() {
        let mut playing = client.play(scene.hasty().misbehave(STUBBORN));
        let holders = playing.holders();
        let killed = who(&playing, holders);
        playing.send_all(&killed, Signal::KILL);
        playing.assert_only_client_within(AFTER_ANYTHING);
    }
}

#[test]
fn s10_moored_killed() {
    for client in Client::OWN {
        killing(client, |_, holders| vec![holders.moored]);
    }
}

#[test]
fn s10_moored_killed_under_a_typescript_client_needs_node() {
    killing(Client::TypeScript, |_, holders| vec![holders.moored]);
}

#[test]
fn s10_moored_killed_under_a_python_client_needs_python() {
    killing(Client::Python, |_, holders| vec![holders.moored]);
}

#[test]
fn s10_the_outer_guardian_killed() {
    killing(Client::Pipes, |_, holders| vec![holders.outer]);
}

#[test]
fn s10_the_inner_guardian_killed() {
    killing(Client::Pipes, |_, holders| vec![holders.inner]);
}

#[test]
fn s10_moored_and_its_client_killed() {
    killing(Client::Pipes, |playing, holders| vec![playing.client(), holders.moored]);
    killing(Client::Sockets, |playing, holders| vec![holders.moored, playing.client()]);
}

#[test]
fn s10_moored_and_the_outer_guardian_killed() {
    killing(Client::Pipes, |_, holders| vec![holders.moored, holders.outer]);
}

#[test]
fn s10_moored_and_the_inner_guardian_killed() {
    killing(Client::Pipes, |_, holders| vec![holders.moored, holders.inner]);
}

#[test]
fn s10_the_client_and_the_outer_guardian_killed() {
    killing(Client::Pipes, |playing, holders| vec![playing.client(), holders.outer]);
}

#[test]
fn s10_the_client_and_the_inner_guardian_killed() {
    killing(Client::Pipes, |playing, holders| vec![playing.client(), holders.inner]);
}

/// As the Python SDK and codex do it: the group that moored was started in is killed whole.
#[test]
fn s10_the_clients_whole_group_killed() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.hasty().misbehave(STUBBORN));
        playing.holders();
        playing.kill_group();
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}

/// With a PID namespace the kernel ends it even if all of moored's processes are killed at once.
#[test]
fn s10_all_of_moored_killed_in_strict_mode() {
    for scene in Scene::all() {
        let tried = scene.moored(["run", "--strict", "--", "true"]);
        if tried.status.code() == Some(125) {
            let words = String::from_utf8_lossy(&tried.stderr).into_owned();
            assert!(
                scene.user == User::Plain && words.contains("pidns"),
                "root can always have one: {words}"
            );
            lacking("user namespaces for a plain user");
            continue;
        }
        let mut playing = Client::Pipes.play(scene.options(["--strict"]).misbehave(STUBBORN));
        let holders = playing.holders();
        playing.send_all(&[holders.outer, holders.inner, holders.moored], Signal::KILL);
        let client = playing.client().pid;
        playing.assert_gone_but(AFTER_ANYTHING, |one| one.pid == client);
        playing.scene.assert_tidied_up();
    }
}

/// A server can stop the moored that holds it, which then sees nothing any more. The next `run` of the user sets it going, and
/// so does an operator who wants it to end.
#[test]
fn a_stopped_moored_goes_on_when_its_client_is_dead_and_somebody_looks() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.hasty().misbehave(STUBBORN));
        let holders = playing.holders();
        playing.send_all(&[holders.moored, holders.outer, holders.inner], Signal::STOP);
        playing.kill_client();
        let next = Wire::start(playing.scene.command(moored(), ["run", "--", "cat"]));
        next.finish();
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}

#[test]
fn a_stopped_moored_is_stopped_for_good_by_an_operator() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.hasty().misbehave(STUBBORN));
        let holders = playing.holders();
        playing.send_all(&[holders.moored], Signal::STOP);
        let output = playing.scene.moored(["stop", "--all"]);
        assert!(output.status.success(), "{output:?}");
        playing.assert_only_client_within(AFTER_ANYTHING);
    }
}
