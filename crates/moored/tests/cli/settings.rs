//! Settings through the binary: their order, their origin, and what a broken file does.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use moored_testkit::bins::bin_of;
use moored_testkit::{MarkGuard, Scratch, User};
use serde_json::Value;

use crate::home::{Home, Said, said};

fn setting<'a>(shown: &'a Value, key: &str) -> &'a Value {
    let settings = shown["settings"].as_array().expect("a list");
    settings.iter().find(|setting| setting["key"] == key).expect("a key")
}

fn with_user_file(text: &str) -> Home {
    let home = Home::new();
    fs::create_dir_all(home.join("config/moored")).expect("a folder");
    fs::write(home.join("config/moored/config.toml"), text).expect("a file");
    home
}

#[test]
fn each_value_is_shown_with_its_origin() {
    let home = with_user_file("[run]\ngrace = '3s'\nidle = '15m'\nkeep = ['tmux']\n");
    fs::write(home.join("moored.toml"), "[run]\nidle = 'off'\n").expect("a file");
    let show = ["config", "show", "--json", "--config", "moored.toml"];
    let output = said(home.command(&show).env("MOORED_RESTART", "on-crash"));
    let shown: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(shown["schema_version"], 1);
    let facts = |key: &str| {
        let setting = setting(&shown, key);
        (setting["value"].clone(), setting["origin"].clone(), setting["from"].clone())
    };
    let user = home.join("config/moored/config.toml").display().to_string();
    let near = home.join("moored.toml").canonicalize().expect("a file").display().to_string();
    assert_eq!(facts("grace"), ("3s".into(), "file".into(), user.clone().into()));
    assert_eq!(facts("idle"), ("off".into(), "file".into(), near.into()));
    assert_eq!(facts("keep"), (vec!["tmux"].into(), "file".into(), user.into()));
    assert_eq!(facts("restart"), ("on-crash".into(), "env".into(), "MOORED_RESTART".into()));
    assert_eq!(facts("kill-after"), ("2s".into(), "default".into(), Value::Null));
    let table = home.moored(&["config", "show"]).stdout;
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("run.grace") && line.contains("3s") && line.contains("file "))
    );
}

#[test]
fn a_value_that_a_run_would_refuse_fails_the_check() {
    let sound = with_user_file("[run]\ngrace = '3s'\n");
    assert_eq!(sound.moored(&["config", "check"]).code, 0);
    for (text, word) in [
        ("[run]\ngrace = 'soon'\n", "run.grace"),
        ("[run]\ngrase = '3s'\n", "run.grase"),
        ("[run\n", "config.toml"),
        ("[rum]\n", "rum"),
    ] {
        let said = with_user_file(text).moored(&["config", "check"]);
        assert_eq!(said.code, 1, "{text}: {said:?}");
        assert!(said.stderr.contains(word), "{text}: {said:?}");
    }
    assert_eq!(sound.moored(&["config", "check", "/nowhere.toml"]).code, 1);
}

#[test]
fn a_run_does_not_start_on_settings_that_it_does_not_understand() {
    let home = with_user_file("[run]\ngrace = 'soon'\n");
    let refused = home.moored(&["run", "--", "sh", "-c", "echo started"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (125, ""), "{refused:?}");
    let told = home.moored(&["run", "--grace", "1s", "--", "sh", "-c", "echo started"]);
    assert_eq!((told.code, told.stdout.as_str()), (0, "started\n"), "a flag stands before it: {told:?}");
}

#[test]
fn an_unknown_key_does_not_keep_a_server_from_running() {
    let said =
        with_user_file("[run]\nfrom-the-future = 1\n").moored(&["run", "--", "sh", "-c", "echo started"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "started\n"));
    assert!(said.stderr.contains("run.from-the-future"), "{said:?}");
}

#[test]
fn a_misspelt_key_or_variable_is_told_with_what_may_be_meant_and_the_rest_holds() {
    let home = with_user_file("[run]\ngrase = '9s'\nname = 'theirs'\n[rum]\n");
    let mut command = home.command(&["run", "--", "sh", "-c", "echo started"]);
    let said = said(command.env("MOORED_RESTRAT", "never"));
    assert_eq!((said.code, said.stdout.as_str()), (0, "started\n"));
    for meant in ["`run.grace` may be meant", "`run` may be meant", "`MOORED_RESTART` may be meant"] {
        assert!(said.stderr.contains(meant), "{meant}: {said:?}");
    }
    assert_eq!(home.json(&["ps", "-a", "--json"])["servers"][0]["name"], "theirs");
}

#[test]
fn places_and_schema_are_shown() {
    let home = with_user_file("");
    let places = home.json(&["config", "path", "--json"]);
    let files = places["files"].as_array().expect("a list");
    assert_eq!(
        files.iter().map(|file| file["exists"].as_bool()).collect::<Vec<_>>(),
        [Some(true), Some(Path::new("/etc/moored/config.toml").exists())]
    );
    let schema: Value = serde_json::from_str(&home.moored(&["config", "schema"]).stdout).expect("JSON");
    assert_eq!(schema["properties"]["run"]["properties"]["restart"]["enum"][1], "on-crash");
}

/// What a cloned repository would like: the server's stderr appended to a file of the user's, and a stay of three hours.
const REPOSITORY: &str = "[run]\nname = 'theirs'\nlog-file = 'stolen.log'\ngrace = '3h'\nkeep = ['sh']\n";

/// A run whose working folder has settings of its own, as this user.
fn run_beside(text: &str, user: User, options: &[&str]) -> (Scratch, MarkGuard, Said) {
    let (scratch, mark) = (Scratch::for_user(user), MarkGuard::fresh());
    let file = scratch.join("moored.toml");
    fs::write(&file, text).expect("a file");
    std::os::unix::fs::chown(&file, Some(user.uid()), Some(user.gid())).expect("ours to give");
    let args = [&["run"], options, &["--", "sh", "-c", "echo started; echo oops >&2"]].concat();
    let mut command = mark.wrapping().user(user).command(bin_of("moored", "moored"), args);
    command
        .current_dir(scratch.path())
        .env("HOME", scratch.join("home"))
        .env("MOORED_RUNTIME_DIR", scratch.join("run"))
        .env("MOORED_STATE_DIR", scratch.join("state"))
        .stdin(Stdio::null());
    let said = said(&mut command);
    (scratch, mark, said)
}

#[test]
fn f04_a_run_does_not_read_settings_from_the_working_folder() {
    for user in User::available() {
        // Not even to find out that it cannot be understood.
        for text in [REPOSITORY, "[run\n", "[run]\nbogus = 1\n"] {
            let (scratch, _mark, said) = run_beside(text, user, &[]);
            assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "started\n", "oops\n"));
            assert!(!scratch.join("stolen.log").exists(), "{user:?}");
        }
    }
}

#[test]
fn f04_a_run_reads_the_file_that_config_names() {
    for user in User::available() {
        for options in [&["--config", "moored.toml"], &["--config", "./moored.toml"]] {
            let (scratch, _mark, said) = run_beside(REPOSITORY, user, options);
            assert_eq!((said.code, said.stdout.as_str()), (0, "started\n"), "{said:?}");
            assert_eq!(fs::read_to_string(scratch.join("stolen.log")).expect("a log"), "oops\n", "{user:?}");
        }
    }
}

#[test]
fn f04_a_file_that_config_names_must_be_there_and_be_understood() {
    let home = Home::new();
    fs::write(home.join("broken.toml"), "[run\n").expect("a file");
    fs::create_dir(home.join("folder.toml")).expect("a folder");
    for file in ["nowhere.toml", "broken.toml", "folder.toml", "/etc/passwd/x"] {
        let said = home.moored(&["run", "--config", file, "--", "echo", "started"]);
        assert_eq!((said.code, said.stdout.as_str()), (125, ""), "{file}: {said:?}");
        assert!(said.stderr.contains(file), "{file}: {said:?}");
        for verb in ["show", "check"] {
            let said = home.moored(&["config", verb, "--config", file]);
            assert_eq!(said.code, 1, "{verb} {file}: {said:?}");
            assert!(said.stderr.contains(file), "{verb} {file}: {said:?}");
        }
    }
    let said = said(home.command(&["run", "--", "echo", "started"]).env("MOORED_CONFIG", "nowhere.toml"));
    assert_eq!((said.code, said.stdout.as_str()), (125, ""), "the variable names it too: {said:?}");
}

#[test]
fn f04_config_show_says_that_a_file_in_the_working_folder_is_not_read() {
    let home = with_user_file("[run]\ngrace = '3s'\n");
    fs::write(home.join("moored.toml"), "[run]\ngrace = '4s'\nrestart = 'on-crash'\n").expect("a file");
    let ignored = home.moored(&["config", "show", "--json"]);
    let shown: Value = serde_json::from_str(&ignored.stdout).expect("JSON");
    assert_eq!(
        (&setting(&shown, "grace")["value"], &setting(&shown, "restart")["value"]),
        (&"3s".into(), &"never".into())
    );
    assert!(ignored.stderr.contains("--config moored.toml"), "{ignored:?}");
    let named = home.json(&["config", "show", "--json", "--config", "moored.toml"]);
    assert_eq!(setting(&named, "grace")["value"], "4s", "it stands before the user's own");
    assert_eq!(setting(&named, "restart")["origin"], "file");
    let places = home.json(&["config", "path", "--json"]);
    assert!(!places.to_string().contains("moored.toml"), "{places}");
    let places = home.json(&["config", "path", "--json", "--config", "moored.toml"]);
    assert_eq!(places["files"][0]["path"], home.join("moored.toml").display().to_string());
}
