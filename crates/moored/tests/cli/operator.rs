//! The operator's verbs, on real servers.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::time::Duration;

use moored_containment::{ProcessIdentity, RuntimeDir};
use moored_registry::boot_time::millis_since_boot;
use moored_registry::{Origin, RunInfo, RunRegistration};
use moored_supervisor::event::{Client, RunId};
use moored_testkit::wait_until;
use serde_json::{Value, json};

use crate::home::Home;

/// A server with a child, that says something on stderr; three processes with its `cat`.
const SERVER: [&str; 6] = ["--name", "srv", "--", "sh", "-c", "echo oops >&2; sleep 600 & cat"];

#[test]
fn a_server_is_listed_with_its_processes_and_its_client() {
    let home = Home::new();
    let running = home.run(&SERVER);
    let rows = home.wait_for(1, 3);
    let row = &rows[0];
    assert_eq!((&row["name"], &row["origin"], &row["sessions"]), (&json!("srv"), &json!("run"), &json!(1)));
    assert_eq!(row["client"]["pid"], std::process::id());
    assert_eq!(row["verdict"], "attached");
    let reason = row["reason"].as_str().expect("a text");
    assert!(
        reason.starts_with("stdin held by ") && reason.ends_with(&format!("({})", std::process::id())),
        "{reason}"
    );
    assert_eq!(row["command"], json!(["sh", "-c", "echo oops >&2; sleep 600 & cat"]));
    assert_eq!(row["containment"]["layers"][0], "guardian");
    assert_eq!(row["processes"][0]["pid"], row["pid"]);
    let id = row["id"].as_str().expect("a text");

    let table = home.moored(&["ps"]).stdout;
    let columns: Vec<&str> = table.lines().next().expect("a head").split_whitespace().collect();
    assert_eq!(
        columns,
        "ID NAME STATE VERDICT CLIENT PID PROCS RSS CPU UP COMMAND".split(' ').collect::<Vec<_>>()
    );
    assert!(table.lines().nth(1).expect("a row").starts_with(&id[..12]), "{table}");
    assert_eq!(home.moored(&["ps", "-q"]).stdout, format!("{id}\n"));
    let tree = home.moored(&["ps", "--tree"]).stdout;
    assert!(tree.lines().any(|line| line.contains("└─") && line.contains("cat")), "{tree}");

    let inspected = home.json(&["inspect", &id[..20], "--json"]);
    assert_eq!(inspected["server"]["id"], id);
    assert_eq!(inspected["server"]["moored"]["pid"], running.pid());
    assert_eq!(inspected["server"]["guardians"].as_array().expect("a list").len(), 2);
    let text = home.moored(&["inspect", "srv"]).stdout;
    assert!(text.contains("held by") && text.contains(id), "{text}");
}

/// Everything that is shown of a server, and everything that is written down of it.
fn all_that_is_known(home: &Home) -> String {
    let mut known = String::new();
    for args in [
        &["ps", "-a", "--json"][..],
        &["ps", "--tree"],
        &["ps"],
        &["inspect", "srv"],
        &["inspect", "srv", "--json"],
        &["events", "--json"],
        &["events"],
    ] {
        let said = home.moored(args);
        known.push_str(&format!("{args:?}\n{}{}", said.stdout, said.stderr));
    }
    let mut folders = vec![home.join("run"), home.join("state")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            known.push_str(&format!("{}\n", path.display()));
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                known.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()));
            }
        }
    }
    known
}

#[test]
fn f08_no_secret_of_a_command_line_is_shown_or_written_down() {
    let home = Home::new();
    let secrets = [
        "postgres://me:HUSH@host/db",
        "--pass",
        "HUSH",
        "--pwd=HUSH",
        "--passphrase",
        "-HUSH",
        "--pat",
        "HUSH",
        "--cookie",
        "sid=HUSH",
        "X-Any: Bearer HUSH",
        "ghp_HUSH0123456789",
        "https://host/mcp?a=1&sig=HUSH&token=HUSH",
        "mysql",
        "-pHUSH",
    ];
    let run = [&["--name", "srv", "--", "sh", "-c", "sleep 600 & cat", "sh"][..], &secrets].concat();
    let running = home.run(&run);
    home.wait_for(1, 3);
    let id = home.moored(&["ps", "-q"]).stdout;
    let known = wait_until("it is written down", Duration::from_secs(10), || {
        Some(all_that_is_known(&home)).filter(|known| known.contains("\"begun\""))
    });
    assert!(known.contains("postgres://me:***@host/db") && known.contains(id.trim()), "{known}");
    assert!(!known.contains("HUSH"), "{known}");
    home.moored(&["stop", "srv"]);
    running.wait();
    let known = all_that_is_known(&home);
    assert!(known.contains("\"ended\"") && !known.contains("HUSH"), "{known}");
}

#[test]
fn f08_a_name_and_an_error_have_no_secret_either() {
    let home = Home::new();
    // The whole command line as one word, as some configs have it; and an option that looks like the package.
    let said = home.moored(&["run", "--", "srv --api-key HUSH postgres://me:HUSH@host"]);
    assert_eq!(said.code, 127, "{said:?}");
    assert!(said.stderr.contains("srv --api-key ***") && !said.stderr.contains("HUSH"), "{said:?}");
    let said = home.moored(&["run", "--", "/nowhere/npx", "--token", "HUSH", "srv"]);
    assert!(said.stderr.contains("`srv`") && !said.stderr.contains("HUSH"), "{said:?}");
    let known = all_that_is_known(&home);
    assert!(known.contains("\"start-failed\"") && !known.contains("HUSH"), "{known}");
}

#[test]
fn stop_ends_all_of_a_name_and_they_are_history_then() {
    let home = Home::new();
    let running = [home.run(&SERVER), home.run(&SERVER)];
    let rows = home.wait_for(2, 3);
    let ids: Vec<&str> = (0..2).map(|at| rows[at]["id"].as_str().expect("a text")).collect();

    let unclear = home.moored(&["inspect", "srv"]);
    assert_eq!(unclear.code, 1);
    assert!(ids.iter().all(|id| unclear.stderr.contains(id)), "{unclear:?}");
    let nobody = home.moored(&["stop", "srv", "bogus"]);
    assert_eq!(nobody.code, 1);
    assert!(
        nobody.stderr.contains("`bogus`") && nobody.stderr.contains("hint: known names: srv"),
        "{nobody:?}"
    );
    home.wait_for(2, 3);

    let stopped = home.moored(&["stop", "srv"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert_eq!(stopped.stdout.lines().filter(|line| line.contains("verified")).count(), 2, "{stopped:?}");
    for one in running {
        one.wait();
    }
    assert_eq!(home.json(&["ps", "--json"])["servers"], json!([]));
    let ended = home.json(&["ps", "-a", "--json"]);
    let states = |rows: &Value| -> Vec<Value> {
        rows.as_array().expect("a list").iter().map(|row| row["state"].clone()).collect()
    };
    assert_eq!(states(&ended["servers"]), ["ended", "ended"]);
    assert_eq!(ended["servers"][0]["reason"], "ended: an operator stopped it");
    assert_eq!(home.json(&["inspect", ids[0], "--json"])["server"]["record"]["end_cause"], "operator");
    assert_eq!(home.moored(&["stop", "--all"]).code, 0);
}

#[test]
fn events_are_lines_of_json_in_their_order() {
    let home = Home::new();
    assert_eq!(home.moored(&["run", "--name", "brief", "--", "sh", "-c", "exit 3"]).code, 3);
    let said = home.moored(&["events", "--json", "--since", "1h"]);
    let events: Vec<Value> =
        said.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let words: Vec<&str> = events.iter().map(|event| event["event"].as_str().expect("a word")).collect();
    assert_eq!(words, ["begun", "started", "ended"], "{said:?}");
    assert!(events.iter().all(|event| event["server"] == "brief" && event["schema_version"] == 1));
    assert_eq!(events[2]["exit_code"], 3);
    let text = home.moored(&["events"]).stdout;
    assert!(text.lines().last().expect("a line").contains("; exit code 3; gone in "), "{text}");
    assert_eq!(home.moored(&["events", "--since", "0"]).stdout, "");
}

#[test]
fn events_that_are_followed_come_as_they_happen() {
    let home = Home::new();
    let mut follower = home.start(&["events", "-f", "--json"]);
    let mut lines = follower.lines();
    for code in ["4", "5"] {
        home.moored(&["run", "--name", "brief", "--", "sh", "-c", &format!("exit {code}")]);
        // Written down only after the one before was read: it is not the history at the start.
        let ended = lines.find(|line| line.contains("\"event\":\"ended\""));
        let ended: Value = serde_json::from_str(&ended.expect("an end")).expect("JSON");
        assert_eq!(ended["exit_code"].to_string(), code);
    }
}

#[test]
fn what_a_server_says_on_stderr_is_kept_and_followed() {
    let home = Home::new();
    let running = home.run(&SERVER);
    home.wait_for(1, 3);
    let kept = wait_until("the log is written", Duration::from_secs(10), || {
        Some(home.moored(&["logs", "srv"])).filter(|said| !said.stdout.is_empty())
    });
    assert_eq!((kept.code, kept.stdout.as_str()), (0, "oops\n"), "{kept:?}");
    assert_eq!(home.moored(&["logs", "srv", "-n", "0"]).stdout, "");
    let stopping = std::thread::spawn({
        let mut stop = home.command(&["stop", "srv"]);
        move || stop.output().expect("moored")
    });
    let followed = home.moored(&["logs", "-f", "srv"]);
    assert_eq!((followed.code, followed.stdout.as_str()), (0, "oops\n"), "it ends with the server");
    stopping.join().expect("a stop");
    running.wait();
    assert_eq!(home.moored(&["logs", "srv"]).stdout, "oops\n", "it outlives the server");
    assert_eq!(home.moored(&["logs", "bogus"]).code, 1);
}

#[test]
fn a_log_in_a_place_of_its_own_is_found_after_the_end() {
    let home = Home::new();
    let place = home.join("elsewhere.log").display().to_string();
    home.moored(&["run", "--name", "away", "--log-file", &place, "--", "sh", "-c", "echo oops >&2"]);
    let kept = home.moored(&["logs", "away"]);
    assert_eq!((kept.code, kept.stdout.as_str()), (0, "oops\n"), "{kept:?}");
}

/// Of a `run` whose moored is this process.
fn facts(moored: ProcessIdentity) -> RunInfo {
    let us = ProcessIdentity::of(std::process::id()).expect("us");
    RunInfo {
        run: RunId::generate(),
        moored,
        moored_version: "0".into(),
        name: "context7".into(),
        command: ["npx", "-y", "@upstash/context7-mcp"].map(Into::into).to_vec(),
        cwd: "/work".into(),
        server_key: serde_json::from_str("1").expect("a key"),
        entry_key: serde_json::from_str("2").expect("a key"),
        client: Some(Client { pid: us.pid, identity: Some(us), name: "codex".into() }),
        client_holds_stdin: true,
        origin: Origin::Run,
        began_ms: Some(millis_since_boot()),
        session: None,
        started_at: "2026-11-15T20:00:00Z".parse().expect("a time"),
        log_file: None,
        pid_file: None,
        max_instances: None,
    }
}

/// It has closed its door and writes down its end: that is no failure of whoever wants it to end.
#[test]
fn one_that_is_at_its_end_is_shown_so_and_is_stopped_when_it_has_ended() {
    let home = Home::new();
    let folder = RuntimeDir::at(home.join("run")).expect("a folder");
    let mut ending = std::process::Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
    let registration = RunRegistration::take(&folder, &facts(ProcessIdentity::of(ending.id()).expect("it")))
        .expect("a registration");
    drop(UnixListener::bind(registration.socket()).expect("a socket"));
    assert_eq!(home.json(&["ps", "--json"])["servers"][0]["state"], "ending");
    let stopping = std::thread::spawn({
        let mut stop = home.command(&["stop", "context7"]);
        move || stop.output().expect("moored")
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(!stopping.is_finished(), "it is waited for");
    drop(ending.stdin.take());
    ending.wait().expect("our child");
    let stopped = stopping.join().expect("a stop");
    assert_eq!(stopped.status.code(), Some(0), "{stopped:?}");
}

#[test]
fn ps_shows_what_a_run_says_of_itself() {
    let home = Home::new();
    let folder = RuntimeDir::at(home.join("run")).expect("a folder");
    let us = ProcessIdentity::of(std::process::id()).expect("us");
    let facts = facts(us);
    let registration = RunRegistration::take(&folder, &facts).expect("a registration");
    let listener = UnixListener::bind(registration.socket()).expect("a socket");
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a question");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("a line");
        assert_eq!(line, "{\"do\":\"status\"}\n");
        let status = json!({"reply": "status", "state": "hibernating", "session": null, "server": null, "guardians": [],
            "strength": null, "server_version": "1.0.2", "stale": null, "last_activity_at": "2026-11-15T20:00:01Z",
            "silent_ms": 5, "in_flight": 0, "subscriptions": 0, "superseded_by": null, "counters": {
            "bytes_to_server": 0, "bytes_to_client": 0, "messages_to_server": 0, "messages_to_client": 0, "wakes": 0,
            "restarts": 0}});
        writeln!(stream, "{status}").expect("a reader");
    });
    let mut shown = home.json(&["ps", "--json"]);
    answering.join().expect("it was asked");
    let row = shown["servers"][0].as_object_mut().expect("a row");
    assert!(row.remove("uptime_seconds").expect("a number").as_f64().expect("a number") > 0.0);
    let expected = json!({"id": facts.run.to_string(), "name": "context7", "origin": "run", "state": "hibernating",
        "verdict": "attached", "reason": format!("stdin held by codex ({})", us.pid), "pid": null,
        "client": {"pid": us.pid, "name": "codex"}, "command": ["npx", "-y", "@upstash/context7-mcp"], "cwd": "/work",
        "config_file": null, "started_at": "2026-11-15T20:00:00Z", "rss_bytes": 0, "cpu_percent": 0.0,
        "containment": {"strength": "none", "layers": []}, "processes": [], "containers": [], "server_version": "1.0.2",
        "stale": false, "sessions": 1, "last_activity_at": "2026-11-15T20:00:01Z"});
    assert_eq!(shown["servers"][0], expected);
}
