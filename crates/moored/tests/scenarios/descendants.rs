//! What a server starts, and tries to leave behind: S25 to S30.

use std::fs;
use std::time::Duration;

use moored_testkit::{Bystander, User, innocents::Group, read_pids, wait_until};
use serde_json::json;

use crate::common::client::Client;
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::common::{AFTER_ANYTHING, DEADLINE};

// === S25: a daemon, and the server gone ===

#[test]
fn s25_a_daemon_goes_with_the_session_of_a_server_that_exits() {
    for scene in Scene::all() {
        let scene = scene.hasty().misbehave(["--daemon", "--clean-daemon", "--exit-now", "0"]);
        let mut wire = Wire::start(scene.run_command());
        assert_eq!(wire.exit().code(), Some(0));
        // It has waited for the end of all before it ended itself.
        assert_eq!(scene.mark.alive(), [], "{:?}", scene.user);
        scene.assert_clean();
        assert_eq!(scene.end_causes(), [json!("server-exited")]);
    }
}

#[test]
fn s25_a_daemon_goes_with_the_client() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.hasty().misbehave(["--daemon", "--clean-daemon"]));
        playing.kill_client();
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}

#[test]
fn s25_what_is_declared_to_be_kept_is_kept() {
    for scene in Scene::all() {
        let folder = scene.scratch.path().as_os_str().to_owned();
        let scene = scene.hasty().options(["--keep", "tmux"]);
        let mut switches = vec!["--keep-alive-child".into(), "tmux".into(), "--keep-dir".into(), folder];
        switches.push("--daemon".into());
        let mut playing = Client::Pipes.play(scene.misbehave(switches));
        let kept = read_pids(playing.scene.scratch.join("tmux.pids"));
        assert_eq!(kept.len(), 2, "one and its child");
        playing.kill_client();
        playing.assert_gone_but(AFTER_ANYTHING, |survivor| kept.contains(&survivor.pid));
        let alive = playing.scene.mark.alive();
        assert_eq!(alive.len(), 2, "{alive:#?}");
    }
}

// === S26: a browser, with a group of its own and many processes ===

#[test]
fn s26_a_browser_like_tree_goes_when_the_client_is_killed() {
    for scene in Scene::all() {
        let switches =
            ["--own-group", "--own-session-child", "--tree", "24", "--chain", "6", "--stopped-child"];
        let mut playing = Client::Sockets.play(scene.hasty().misbehave(switches));
        playing.kill_client();
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}

// === S27: a helper in a group of its own ===

#[test]
fn s27_a_helper_that_changes_its_group_goes() {
    for scene in Scene::all() {
        let ready = scene.ready_file();
        let script = format!("set -m; sleep 600 & touch {}; cat", ready.display());
        let mut playing = Client::Pipes.play_unanswered(scene.hasty().server(["bash", "-c", &script]));
        playing.kill_client();
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}

// === S28: forks that race the kill ===

#[test]
fn heavy_s28_forks_that_race_the_kill_leave_nobody() {
    for scene in Scene::all() {
        let switches = ["--storm", "8", "--storm-period", "1000", "--ignore-eof", "--ignore-term"];
        let mut playing = Client::Pipes.play(scene.hasty().misbehave(switches));
        playing.kill_client();
        let left = playing.scene.mark.wait_until_none(AFTER_ANYTHING);
        assert!(left.is_ok(), "{:?}: {left:#?}", playing.scene.user);
    }
}

// === S29: zombies ===

/// The server's orphans die and are nobody's children: moored's side reaps them while the session goes on.
#[test]
fn s29_orphans_that_die_are_reaped_at_once() {
    for scene in Scene::all() {
        let ready = scene.ready_file();
        let orphans = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.05 & ); done";
        let script = format!("{orphans}; touch {}; exec {}", ready.display(), misbehave());
        let mut playing = Client::Pipes.play(scene.hasty().server(["sh", "-c", &script]));
        wait_until("no orphan is left, dead or alive", DEADLINE, || {
            let all = playing.scene.mark.alive_and_zombies();
            all.iter().all(|one| one.comm != "sleep").then_some(())
        });
        playing.assert_echo("still there");
        playing.order("close");
        playing.event_named("closed");
        playing.exit();
        playing.assert_gone_within(AFTER_ANYTHING);
        assert_no_zombies(&playing.scene);
    }
}

/// The client never waits for its child: moored's own processes leave no zombie but moored itself, who is the client's.
#[test]
fn s29_a_client_that_never_waits_has_one_zombie_at_most() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.hasty().misbehave(["--tree", "8", "--exit-code", "3"]));
        let server = fs::read_to_string(playing.scene.ready_file()).expect("its pid");
        let pid = server.trim().parse::<u32>().expect("a number");
        let server = moored_containment::ProcessIdentity::of(pid).expect("the server");
        let moored = playing.holders().moored;
        playing.send(&server, rustix::process::Signal::KILL);
        playing.assert_only_client_within(AFTER_ANYTHING);
        let dead = playing.scene.mark.alive_and_zombies();
        let others: Vec<_> =
            dead.iter().filter(|one| one.pid != moored.pid && one.pid != playing.client().pid).collect();
        assert!(others.is_empty(), "{others:#?}");
    }
}

// === S30: PID 1 without an init ===

/// moored is the first process of a PID namespace, as the command of a container without init.
#[test]
fn s30_moored_as_pid_1_reaps_and_passes_sigterm_on_needs_unshare() {
    if !User::available().contains(&User::Root) {
        return;
    }
    let scene = Scene::new(User::Root).hasty().misbehave(["--ignore-eof", "--daemon", "--tree", "3"]);
    let mut argv = ["--pid", "--fork", "--mount-proc", "--kill-child", "--"].map(Into::into).to_vec();
    argv.extend(scene.argv());
    let mut wire = Wire::start(scene.command("unshare", argv));
    wire.initialize();
    wire.assert_echo(1, "from within");
    let moored = scene.mark.alive().into_iter().find(|one| one.ppid == wire.child.id()).expect("PID 1");
    let identity = moored_containment::ProcessIdentity::of(moored.pid).expect("PID 1");
    assert!(crate::common::send(&identity, rustix::process::Signal::TERM));
    wire.exit();
    scene.assert_clean();
}

// === Innocents ===

/// Those in the client's own group, and in groups beside it, are never signalled: N03, N08.
#[test]
fn n03_nobody_else_is_ever_signalled() {
    for scene in Scene::all() {
        let (user, scene) = (scene.user, scene.hasty().misbehave(crate::client_goes::STUBBORN));
        let mut playing = Client::Pipes.play(scene);
        let mut beside = [
            Bystander::spawn_as(user, Group::Of(playing.client().pid)),
            Bystander::spawn_as(user, Group::Inherited),
            Bystander::spawn_as(user, Group::Own),
        ];
        playing.order("close");
        playing.event_named("closed");
        playing.assert_gone_within(AFTER_ANYTHING);
        beside.iter_mut().for_each(Bystander::assert_untouched);
    }
}

fn misbehave() -> String {
    moored_testkit::bin("misbehave").display().to_string()
}

fn assert_no_zombies(scene: &Scene) {
    let look = || scene.mark.alive_and_zombies().is_empty().then_some(());
    wait_until("nobody is left, dead or alive", Duration::from_secs(5), look);
}
