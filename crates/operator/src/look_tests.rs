//! A real contained tree, a real registration and a real socket with somebody behind it; only the `run` itself is played.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use moored_containment::{Command, Contained, Ladder, Recording, RuntimeDir, Stdio};
use moored_registry::boot_time::millis_since_boot;
use moored_registry::{Origin, RunRegistration};
use moored_supervisor::event::Client;
use moored_testkit::wait_until;
use serde_json::{Value, json};

use super::*;
use crate::{StopOutcome, find};

struct Played {
    path: PathBuf,
    folder: RuntimeDir,
    facts: RunInfo,
    server: Arc<Mutex<Contained>>,
    registration: Option<RunRegistration>,
}

/// A server with a child, in a registration of its own.
fn played(client: Option<Client>) -> Played {
    let path = std::env::temp_dir().join(format!("moored-look-{}", RunId::generate()));
    let folder = RuntimeDir::at(&path).expect("a folder");
    let server = Command::new("sh")
        .args(["-c", "sleep 600 & cat", "sh", "--api-key", "hush"])
        .stdin(Stdio::Pipe)
        .stdout(Stdio::Pipe)
        .recording(Recording::In(folder.clone()))
        .spawn()
        .expect("a server");
    let facts = RunInfo {
        moored_version: "0".into(),
        run: RunId::generate(),
        moored: ProcessIdentity::of(std::process::id()).expect("us"),
        name: "srv".into(),
        command: vec!["sh".into(), "-c".into()],
        cwd: "/work".into(),
        server_key: serde_json::from_str("1").expect("a key"),
        entry_key: serde_json::from_str("2").expect("a key"),
        client,
        client_holds_stdin: true,
        origin: Origin::Run,
        began_ms: Some(millis_since_boot()),
        session: None,
        started_at: "2026-11-15T20:00:00Z".parse().expect("a time"),
        log_file: Some("/l/x.log".into()),
        pid_file: None,
        max_instances: None,
    };
    let registration = RunRegistration::take(&folder, &facts).expect("a registration");
    Played { path, folder, facts, server: Arc::new(Mutex::new(server)), registration: Some(registration) }
}

fn us(name: &str) -> Client {
    let pid = std::process::id();
    Client { pid, identity: ProcessIdentity::of(pid).ok(), name: name.into() }
}

impl Played {
    fn status(&self) -> Status {
        let server = self.server.lock().expect("a server");
        Status {
            state: RunState::Running,
            session: Some(server.id()),
            server: Some(server.identity()),
            guardians: server.guardians().to_vec(),
            strength: Some(server.strength().clone()),
            server_version: Some("1.0.2".into()),
            stale: None,
            last_activity_at: Some("2026-11-15T20:00:01Z".parse().expect("a time")),
            silent_ms: 7,
            in_flight: 1,
            subscriptions: 0,
            counters: Counters::default(),
            superseded_by: None,
        }
    }

    /// Answers on the socket until the folder is gone.
    fn answer(&self, status: Status) {
        let socket = self.registration.as_ref().expect("a registration").socket();
        let listener = UnixListener::bind(socket).expect("a socket");
        let server = Arc::clone(&self.server);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a question");
                if answer_one(&stream, &status, &server).is_none() {
                    break;
                }
            }
        });
    }

    fn look(&self) -> Live {
        let mut live = Operator::at(self.folder.clone()).look().expect("can look");
        assert_eq!(live.len(), 1);
        live.remove(0)
    }

    /// Looks until the child is there too.
    fn look_at_both(&self) -> Live {
        wait_until("two processes", Duration::from_secs(10), || {
            // cat and sleep, below the shell.
            Some(self.look()).filter(|live| live.row.processes.len() == 3)
        })
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = self.server.lock().expect("a server").end(Ladder::kill());
        self.registration = None;
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn answer_one(mut stream: &UnixStream, status: &Status, server: &Mutex<Contained>) -> Option<()> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    let (reply, last) = match serde_json::from_str(&line).ok()? {
        Request::Status => (Reply::Status(Box::new(status.clone())), false),
        Request::Stop { .. } => {
            let report = server.lock().expect("a server").end(Ladder::terminate()).expect("a report");
            (Reply::Stopped { report: Some(report) }, true)
        }
        Request::Hibernate { .. } => (Reply::Refused { reason: "it is busy".into() }, false),
    };
    let mut answer = serde_json::to_vec(&reply).expect("JSON");
    answer.push(b'\n');
    stream.write_all(&answer).ok()?;
    (!last).then_some(())
}

#[test]
fn the_json_of_a_server_has_the_form_of_the_contract() {
    let played = played(Some(us("codex")));
    let status = played.status();
    played.answer(status.clone());
    let live = played.look_at_both();
    let row = serde_json::to_value(&live.row).expect("JSON");
    let server = status.server.expect("a server").pid;
    let fixed = |name: &str| row[name].clone();
    assert_eq!(fixed("id"), json!(played.facts.run.to_string()));
    assert_eq!(
        (fixed("name"), fixed("origin"), fixed("state")),
        (json!("srv"), json!("run"), json!("running"))
    );
    assert_eq!(fixed("verdict"), json!("attached"));
    assert_eq!(fixed("reason"), json!(format!("stdin held by codex ({})", std::process::id())));
    assert_eq!(fixed("pid"), json!(server));
    assert_eq!(fixed("client"), json!({"pid": std::process::id(), "name": "codex"}));
    assert_eq!((fixed("command"), fixed("cwd")), (json!(["sh", "-c"]), json!("/work")));
    assert_eq!((fixed("config_file"), fixed("containers")), (Value::Null, json!([])));
    assert_eq!(fixed("started_at"), json!("2026-11-15T20:00:00Z"));
    assert_eq!(fixed("last_activity_at"), json!("2026-11-15T20:00:01Z"));
    assert_eq!(
        (fixed("server_version"), fixed("stale"), fixed("sessions")),
        (json!("1.0.2"), json!(false), json!(1))
    );
    assert!(row["uptime_seconds"].as_f64().expect("a number") > 0.0);
    assert!(row["rss_bytes"].as_u64().expect("a number") > 100_000, "{row}");
    assert!(row["cpu_percent"].as_f64().expect("a number") >= 0.0);
    let strength = status.strength.expect("a strength");
    assert_eq!(row["containment"]["strength"], json!(strength.level.to_string()));
    assert_eq!(row["containment"]["layers"][0], json!("guardian"));
    let processes = row["processes"].as_array().expect("a list");
    let shell = processes.iter().find(|process| process["pid"] == json!(server)).expect("the server");
    assert_eq!(shell["command"][5], json!("***"), "secrets are masked: {shell}");
    assert_eq!(shell["ppid"], json!(status.guardians[1].pid));
    assert_eq!(processes.iter().filter(|process| process["ppid"] == json!(server)).count(), 2);
    assert!(processes.iter().all(|process| process["state"].is_string()), "{row}");
    assert_eq!((live.details.answers, live.details.in_flight), (true, Some(1)));
}

#[test]
fn one_that_does_not_answer_is_shown_with_what_is_on_record() {
    let played = played(Some(us("codex")));
    let socket = played.registration.as_ref().expect("a registration").socket();
    let _deaf = UnixListener::bind(socket).expect("a socket");
    let before = Instant::now();
    let live = played.look();
    assert!(before.elapsed() < Duration::from_secs(5), "it is not waited for");
    assert!(!live.details.answers);
    assert_eq!(live.row.reason, format!("stdin held by codex ({}); does not answer", std::process::id()));
    assert_eq!(live.row.pid, Some(played.server.lock().expect("a server").identity().pid));
    assert_eq!(live.row.state, RunState::Running);
    assert!(!live.row.processes.is_empty());
}

#[test]
fn a_dead_client_and_a_newer_instance_are_told() {
    let gone =
        Client { identity: us("x").identity.map(|id| ProcessIdentity { start_ticks: 1, ..id }), ..us("x") };
    let played = played(Some(gone));
    played.answer(Status {
        superseded_by: Some(Superseded { by: RunId::generate(), config_changed: false }),
        ..played.status()
    });
    assert_eq!(played.look().row.verdict, Verdict::Lingering);

    let attached = self::played(Some(us("codex")));
    let newer = Superseded { by: RunId::generate(), config_changed: true };
    attached.answer(Status { superseded_by: Some(newer), ..attached.status() });
    let row = attached.look().row;
    assert_eq!(row.verdict, Verdict::Superseded);
    let expected = format!("superseded by {}, config hash changed; stdin held by codex", newer.by);
    assert!(row.reason.starts_with(&expected), "{}", row.reason);
}

#[test]
fn a_stop_is_asked_for_and_its_word_is_checked() {
    let played = played(None);
    played.answer(played.status());
    let all = [played.look_at_both()];
    let mut told = Vec::new();
    let stopped = Live::stop_all(&find(&all, "srv").expect("one"), |one| told.push(one.clone()));
    assert_eq!(stopped, told);
    assert!(stopped[0].is_gone(), "{stopped:?}");
    assert_eq!(stopped[0].survivors, [0_u32; 0]);
    assert!(matches!(&stopped[0].outcome, StopOutcome::Ended { report: Some(report) } if report.verified));
}

#[test]
fn a_run_that_only_says_that_it_has_ended_is_not_believed() {
    let played = played(None);
    let socket = played.registration.as_ref().expect("a registration").socket();
    let (status, listener) = (played.status(), UnixListener::bind(socket).expect("a socket"));
    let liar = thread::spawn(move || {
        for reply in [Reply::Status(Box::new(status)), Reply::Stopped { report: None }] {
            let (mut stream, _) = listener.accept().expect("a question");
            let mut line = serde_json::to_vec(&reply).expect("JSON");
            line.push(b'\n');
            stream.write_all(&line).expect("a reader");
        }
    });
    let live = played.look();
    let stopped = Live::stop_all(&[&live], |_| {});
    assert!(!stopped[0].is_gone());
    assert!(stopped[0].survivors.contains(&live.row.pid.expect("a server")), "{stopped:?}");
    liar.join().expect("it told its lies");
}

#[test]
fn sessions_of_one_process_each_have_their_own_server_and_uptime() {
    let played = played(None);
    let mut other = Command::new("cat")
        .stdin(Stdio::Pipe)
        .recording(Recording::In(played.folder.clone()))
        .spawn()
        .expect("a server");
    let facts = RunInfo {
        run: RunId::generate(),
        origin: Origin::Client,
        session: Some(other.id()),
        began_ms: Some(millis_since_boot().saturating_sub(100_000)),
        ..played.facts.clone()
    };
    let registration = RunRegistration::take(&played.folder, &facts).expect("a registration");
    let live = Operator::at(played.folder.clone()).look().expect("can look");
    let [older, younger] = &live[..] else { panic!("{live:?}") };
    assert_eq!((older.row.origin, younger.row.origin), (Origin::Client, Origin::Run));
    assert!(older.row.uptime_seconds >= 100.0 && younger.row.uptime_seconds < 90.0, "{live:?}");
    assert_eq!(older.row.pid, Some(other.identity().pid));
    // Neither answers, and the younger has not registered which of the two containments is its own.
    assert_eq!(younger.row.pid, None);
    drop(registration);
    other.end(Ladder::kill()).expect("a report");
}
