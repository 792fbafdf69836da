//! Settings through the binary: their order, their origin, and what a broken file does.

use std::fs;

use serde_json::Value;

use crate::home::{Home, said};

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
    let output = said(home.command(&["config", "show", "--json"]).env("MOORED_RESTART", "on-crash"));
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
fn places_and_schema_are_shown() {
    let home = with_user_file("");
    let places = home.json(&["config", "path", "--json"]);
    let files = places["files"].as_array().expect("a list");
    assert_eq!(
        files.iter().map(|file| file["exists"].as_bool()).collect::<Vec<_>>()[..2],
        [Some(false), Some(true)]
    );
    let schema: Value = serde_json::from_str(&home.moored(&["config", "schema"]).stdout).expect("JSON");
    assert_eq!(schema["properties"]["run"]["properties"]["restart"]["enum"][1], "on-crash");
}
