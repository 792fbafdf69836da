//! `--max-instances`: few are awake, and nobody who is busy is ended for it. S13, S14, S17, S20, S42.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use moored_containment::ProcessIdentity;
use moored_registry::control::{Reply, Request, StopBy};
use moored_supervisor::event::SleepReason;
use moored_testkit::{User, wait_until};
use rustix::process::Signal;
use serde_json::json;

use super::{call, events, finish_all, inspect, ps, servers, start, wait_until_awake, wait_until_state};
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::common::{DEADLINE, send};

fn limited(scene: Scene, limit: &str, how: &str) -> Scene {
    scene.hasty().options(["--max-instances", limit, "--over-limit", how])
}

/// A server that has a call to answer, and does not until it is continued.
#[track_caller]
fn make_busy(scene: &Scene, wire: &mut Wire, id: u64) -> ProcessIdentity {
    let [server] = &servers(scene)[..] else { panic!("one server: {:#?}", servers(scene)) };
    let server = ProcessIdentity::of(server.pid).expect("a server");
    assert!(send(&server, Signal::STOP));
    wire.write_line(&call(id, "busy"));
    wait_until("the call is in flight", DEADLINE, || {
        inspect(scene, 0).to_string().contains(r#""in_flight":1"#).then_some(())
    });
    server
}

// === S20: many at once ===

/// Thirty starts at once with room for five: there are never six, seen by one who looks all the time.
#[test]
fn heavy_s20_of_thirty_starts_at_once_no_more_than_five_are_ever_awake() {
    for scene in Scene::all() {
        let scene = limited(scene, "5", "hibernate");
        let (over, began) = (AtomicBool::new(false), Instant::now());
        let mut wires: Vec<Wire> = (0..30).map(|_| Wire::start(scene.run_command())).collect();
        let peak = std::thread::scope(|scope| {
            let looker = scope.spawn(|| {
                let mut peak = BTreeSet::new();
                // Ends with those who start, however that ends.
                while !over.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(60) {
                    let awake: BTreeSet<u32> = servers(&scene).iter().map(|one| one.pid).collect();
                    if awake.len() > peak.len() {
                        peak = awake;
                    }
                    // As often as can be without being in the way of those who start: a server lives longer.
                    std::thread::sleep(Duration::from_millis(5));
                }
                peak
            });
            let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "w", "version": "1" } });
            for wire in &mut wires {
                wire.write_line(
                    &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }),
                );
                wire.write_line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
            }
            for wire in &mut wires {
                let answer = wire.answer_to(&json!(0));
                assert!(answer["result"].is_object(), "{answer}");
            }
            over.store(true, Ordering::Relaxed);
            looker.join().expect("somebody who looks")
        });
        assert!((1..=5).contains(&peak.len()), "{:?}: {} were awake at once", scene.user, peak.len());
        let rows = ps(&scene);
        assert_eq!(rows.len(), 30);
        assert!(
            rows.iter().all(|row| row["state"] == "running" || row["state"] == "hibernating"),
            "{rows:?}"
        );
        assert!(events(&scene, "hibernated").iter().all(|event| event["why"] == "over-limit"));
        finish_all(&scene, wires);
    }
}

#[test]
fn s20_refused_starts_say_so_at_once_and_start_nothing() {
    for scene in Scene::all() {
        let scene = limited(scene, "2", "refuse");
        let wires = vec![start(&scene), start(&scene)];
        let began = Instant::now();
        let output = scene.run_command().output().expect("moored");
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        assert_eq!(servers(&scene).len(), 2);
        // One that goes makes room.
        let mut wires = wires.into_iter();
        wires.next().expect("two").finish();
        let third = start(&scene);
        finish_all(&scene, wires.chain([third]).collect());
    }
}

// === S13, S17: those who are busy ===

/// The next one starts when the busy one has answered its call, and not before.
#[track_caller]
fn the_next_waits_for_a_busy_one(scene: &Scene) -> (Wire, Wire) {
    let mut old = start(scene);
    let server = make_busy(scene, &mut old, 1);
    let mut new = Wire::start(scene.run_command());
    assert!(new.is_silent_for(Duration::from_millis(700)));
    assert_eq!(servers(scene).iter().map(|one| one.pid).collect::<Vec<_>>(), [server.pid]);
    assert!(send(&server, Signal::CONT));
    assert_eq!(old.answer_to(&json!(1))["result"]["content"][0]["text"], "busy");
    new.initialize();
    (old, new)
}

#[test]
fn s13_a_busy_server_is_not_put_to_sleep_and_the_next_waits_for_it() {
    for scene in Scene::all() {
        let scene = limited(scene, "1", "hibernate");
        let (mut old, new) = the_next_waits_for_a_busy_one(&scene);
        wait_until_state(&scene, 0, "hibernating");
        old.assert_echo(2, "woken");
        finish_all(&scene, vec![old, new]);
    }
}

#[test]
fn s13_a_busy_server_is_not_stopped_and_the_next_waits_for_it() {
    for scene in Scene::all() {
        let scene = limited(scene, "1", "stop-oldest");
        let (mut old, new) = the_next_waits_for_a_busy_one(&scene);
        assert!(old.read_line().is_none(), "its stdout has ended");
        old.exit();
        finish_all(&scene, vec![new]);
        assert_eq!(scene.end_causes(), ["over-limit", "client-eof"]);
    }
}

/// Between a look at how busy a server is and the request that follows, a call may have come: so the one who is asked
/// decides.
#[test]
fn s13_whoever_asks_a_busy_server_for_room_is_refused() {
    let scene = Scene::new(User::current()).hasty();
    let mut wire = start(&scene);
    let server = make_busy(&scene, &mut wire, 1);
    for request in
        [Request::Hibernate { why: SleepReason::OverLimit }, Request::Stop { by: StopBy::OverLimit }]
    {
        let reply = ask(&scene, &request);
        assert!(matches!(reply, Reply::Refused { .. }), "{request:?}: {reply:?}");
    }
    assert!(send(&server, Signal::CONT));
    assert_eq!(wire.answer_to(&json!(1))["result"]["content"][0]["text"], "busy");
    assert!(matches!(ask(&scene, &Request::Stop { by: StopBy::OverLimit }), Reply::Stopped { .. }));
    wire.exit();
    scene.assert_clean();
}

/// What the only `run` of the scene replies.
#[track_caller]
fn ask(scene: &Scene, request: &Request) -> Reply {
    let is_socket = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "sock");
    let socket = scene.runtime_files().into_iter().find(is_socket).expect("a socket");
    let mut stream = UnixStream::connect(socket).expect("somebody who answers");
    stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
    let line = serde_json::to_string(request).expect("JSON");
    stream.write_all(format!("{line}\n").as_bytes()).expect("somebody who reads");
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply).expect("a reply");
    serde_json::from_str(&reply).expect("JSON")
}

// === S14: an entry that was edited ===

/// The client has changed the environment of an entry and started it anew: the old one counts as the same server.
#[test]
fn s14_the_old_one_of_an_edited_entry_sleeps_when_there_is_room_for_one() {
    for scene in Scene::all() {
        let scene = limited(scene, "1", "hibernate");
        let mut old = start(&scene);
        let mut edited = scene.run_command();
        edited.env("TOKEN_OF_THE_ENTRY", "another");
        let mut new = Wire::start(edited);
        new.initialize();
        wait_until_awake(&scene, 1);
        let states: Vec<_> = ps(&scene).iter().map(|row| row["state"].clone()).collect();
        assert_eq!(states, ["hibernating", "running"]);
        old.assert_echo(1, "still there");
        finish_all(&scene, vec![old, new]);
    }
}

// === S42: pipes pile up in the client ===

/// A client that starts one generation after the other and drops the ends of those whose output has ended has no more
/// files open than before.
#[test]
fn heavy_s42_a_client_of_many_generations_has_no_more_files_open_than_before() {
    let scene = limited(Scene::new(User::current()), "1", "stop-oldest");
    let files = || fs::read_dir("/proc/self/fd").expect("our files").count();
    let mut last = start(&scene);
    let before = files();
    for _ in 0..40 {
        let next = start(&scene);
        let mut old = std::mem::replace(&mut last, next);
        assert!(old.read_line().is_none(), "its stdout has ended");
        old.exit();
        drop(old);
    }
    wait_until("no more files are open than before", DEADLINE, || (files() <= before).then_some(()));
    finish_all(&scene, vec![last]);
}

/// The first call of a client that has only just started its server may still be on its way.
#[test]
fn a_server_that_was_just_started_is_not_stopped_for_another() {
    for scene in Scene::all() {
        let scene = limited(scene, "1", "stop-oldest");
        let mut first = Wire::start(scene.run_command());
        wait_until_awake(&scene, 1);
        let mut second = Wire::start(scene.run_command());
        assert!(second.is_silent_for(Duration::from_millis(500)));
        first.initialize();
        first.assert_echo(1, "was not stopped");
        second.initialize();
        assert_eq!(first.read_line(), None, "now it was");
        finish_all(&scene, vec![first, second]);
        assert_eq!(scene.end_causes().iter().filter(|cause| **cause == json!("over-limit")).count(), 1);
    }
}

// === turns ===

/// Whoever makes room may be stopped while it does, and anybody of this user can lock a file. A start that waits for that
/// ends with its client.
#[test]
fn a_start_that_waits_for_its_turn_sees_its_client_leave() {
    for scene in Scene::all() {
        let scene = limited(scene, "1", "hibernate");
        let first = start(&scene);
        let room = scene.runtime_dir().join(format!("{:016x}.room", server_key(&scene)));
        let held = File::options().write(true).create_new(true).open(&room).expect("a file");
        chown(&room, Some(scene.user.uid()), Some(scene.user.gid())).expect("ours");
        held.lock().expect("a lock");
        let mut second = Wire::start(scene.run_command());
        assert!(second.is_silent_for(Duration::from_millis(300)));
        let began = Instant::now();
        second.close_stdin();
        assert_eq!(second.exit().code(), Some(125));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        // The lock goes with its file, and the turn is free again.
        drop(held);
        finish_all(&scene, vec![start(&scene), first]);
    }
}

/// By which instances of one server know each other.
fn server_key(scene: &Scene) -> u64 {
    let is_run = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "run");
    let path = scene.runtime_files().into_iter().find(is_run).expect("a run");
    let facts: serde_json::Value = serde_json::from_slice(&fs::read(path).expect("its file")).expect("JSON");
    facts["server_key"].as_u64().expect("a key")
}
