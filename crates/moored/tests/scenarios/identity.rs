//! Locks, numbers that are used again, machines that sleep, supervisors that die: S11, S21, S22, S37, S39, S40.

use std::fs;

use moored_testkit::{Bystander, User, bin, innocents::Group, wait_until};
use rustix::process::Signal;

use crate::client_goes::STUBBORN;
use crate::common::client::Client;
use crate::common::scene::{Scene, moored};
use crate::common::wire::Wire;
use crate::common::{AFTER_ANYTHING, DEADLINE};

// === S11: all who look after a session are killed at once ===

/// Nobody is left who could end it; the next start does, by what was written down.
#[test]
fn s11_the_next_start_sweeps_what_a_crash_of_everything_left() {
    for scene in Scene::all() {
        let user = scene.user;
        let mut playing = Client::Pipes.play(scene.misbehave(STUBBORN));
        let mut innocent = Bystander::spawn_as(user, Group::Own);
        let holders = playing.holders();
        playing.send_all(&[holders.outer, holders.inner, holders.moored], Signal::KILL);
        let output = playing.scene.moored(["run", "--", "true"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let client = playing.client().pid;
        playing.assert_gone_but(AFTER_ANYTHING, |one| one.pid == client);
        innocent.assert_untouched();
        playing.scene.assert_tidied_up();
    }
}

// === S21: probes ===

fn probe(scene: &Scene) {
    let mut wire = Wire::start(scene.run_command());
    wire.initialize();
    // Dropped: killed, and forgotten.
}

#[test]
fn heavy_s21_fifty_probes_leave_nothing() {
    for (user, probes) in User::available().into_iter().zip([50, 15]) {
        let scene = Scene::new(user).hasty().misbehave(["--ignore-eof", "--daemon"]);
        (0..probes).for_each(|_| probe(&scene));
        let left = scene.mark.wait_until_none(AFTER_ANYTHING);
        assert!(left.is_ok(), "{user:?}: {left:#?}");
        // What the killed ones could not remove, the next one does.
        let output = scene.moored(["run", "--", "true"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        scene.assert_clean();
    }
}

// === S22: a server that is itself a host of servers ===

#[test]
fn s22_a_nested_host_goes_with_all_of_its_servers() {
    for scene in Scene::all() {
        let text = |path: std::path::PathBuf| path.display().to_string();
        let ready = text(scene.ready_file());
        let inner =
            [text(bin("misbehave")), "--ignore-eof".into(), "--daemon".into(), "--ready-file".into(), ready];
        let host = [text(bin("client")), "--".into(), text(moored()), "run".into(), "--".into()];
        let mut playing =
            Client::Pipes.play_unanswered(scene.hasty().server([host.to_vec(), inner.to_vec()].concat()));
        playing.kill_client();
        // The outer session has less patience than the inner one, and may have to kill it.
        playing.assert_gone_but(AFTER_ANYTHING, |_| false);
        playing.scene.assert_tidied_up();
    }
}

// === S37: a lock that an orphan would hold ===

/// The second start gets the lock that the first one's server held, since nothing of the first is left.
#[test]
fn s37_a_lock_is_free_when_the_session_is_over_needs_flock() {
    for scene in Scene::all() {
        let lock = scene.scratch.join("db.lock").display().to_string();
        let ready = scene.ready_file();
        let server = format!("touch {}; exec sleep 600", ready.display());
        let argv = ["flock", "--nonblock", "--conflict-exit-code", "75", &lock, "sh", "-c", &server];
        let mut playing = Client::Pipes.play_unanswered(scene.hasty().server(argv));
        let taken = playing.scene.moored(["run", "--", "flock", "-n", "-E", "75", &lock, "true"]);
        assert_eq!(taken.status.code(), Some(75), "it is held: {taken:?}");
        playing.kill_client();
        playing.assert_gone_within(AFTER_ANYTHING);
        let free = playing.scene.moored(["run", "--", "flock", "-n", "-E", "75", &lock, "true"]);
        assert_eq!(free.status.code(), Some(0), "{free:?}");
    }
}

// === S39: a number that is somebody else's now ===

/// The record of a dead session names a process that has since become another: it is not touched.
#[test]
fn s39_a_number_that_was_used_again_is_not_touched() {
    for scene in Scene::all() {
        let user = scene.user;
        let mut playing = Client::Pipes.play(scene.misbehave(["--ignore-eof"]));
        let holders = playing.holders();
        let folder = playing.scene.runtime_dir();
        let is_record =
            |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "session");
        let record = playing.scene.runtime_files().into_iter().find(is_record).expect("a record");
        let text = fs::read_to_string(&record).expect("text");
        playing.send_all(&[holders.outer, holders.inner, holders.moored], Signal::KILL);
        playing.scene.moored(["run", "--", "true"]);
        playing.assert_only_client_within(AFTER_ANYTHING);

        // The same record again, nobody's lock on it, with the numbers of a bystander in place of all that it names.
        let mut innocent = Bystander::spawn_as(user, Group::Own);
        let server = fs::read_to_string(playing.scene.ready_file()).expect("a pid").trim().to_owned();
        let mut forged = text.clone();
        for pid in [server, holders.outer.pid.to_string(), holders.inner.pid.to_string()] {
            assert!(text.contains(&pid), "{text}");
            forged = forged.replace(&pid, &innocent.pid().to_string());
        }
        let path = folder.join(record.file_name().expect("a name"));
        fs::write(&path, forged).expect("a file");
        std::os::unix::fs::chown(&path, Some(user.uid()), Some(user.gid())).expect("ours to give away");
        let output = playing.scene.moored(["run", "--", "true"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        innocent.assert_untouched();
    }
}

// === S40: the clock steps ===

/// A session that was frozen for a while, as a suspended machine freezes it, goes on, and nothing is ended on waking.
#[test]
fn s40_a_session_that_was_frozen_goes_on() {
    for scene in Scene::all() {
        let mut playing = Client::Pipes.play(scene.options(["--grace", "100ms"]).misbehave(["--tree", "3"]));
        let holders = playing.holders();
        let all = playing.scene.mark.alive();
        let identity = |pid| moored_containment::ProcessIdentity::of(pid).expect("a process that lives");
        let all: Vec<_> = all.iter().map(|one| identity(one.pid)).collect();
        playing.send_all(&all, Signal::STOP);
        let stat = format!("/proc/{}/stat", holders.moored.pid);
        wait_until("all have stopped", DEADLINE, || {
            fs::read_to_string(&stat).expect("moored").contains(") T ").then_some(())
        });
        playing.send_all(&all, Signal::CONT);
        playing.assert_echo("after all that time");
        let alive = playing.scene.mark.alive();
        assert_eq!(alive.len(), all.len(), "{alive:#?}");
        playing.order("close");
        playing.event_named("closed");
        playing.assert_gone_within(AFTER_ANYTHING);
    }
}
