//! What each layer can do alone, compared with the table in the crate's documentation.
//!
//! The rows are the layers, each with all others off, the guardian's subreaping included; the columns are what they are
//! up against. Each cell is played, the table is written from what was seen, and it must be the published one.

use std::time::Duration;

use moored_testkit::User;
use serde_json::{Value, json};

use crate::endings::{OwnerExits, SHORT_LADDER};
use crate::setting::{Layers, Setting};
use crate::stage::{Stage, Who, list};

const HEAD: &str = "\
| held by | child | `setsid` daemon | hopping storm | all of ours killed at once |
|---|---|---|---|---|";

const GROUP: Layers = Layers { name: "process group", held_by: &[] };

const ROWS: [Layers; 5] = [
    GROUP,
    Layers { name: "guardian", held_by: &["guardian"] },
    Layers { name: "cgroup", held_by: &["cgroup"] },
    Layers { name: "landlock", held_by: &["landlock"] },
    Layers { name: "pidns", held_by: &["pidns"] },
];

const ENDED_COLUMNS: [&[&str]; 3] = [&["--grandchild"], &["--clean-daemon"], &["--storm", "10"]];

#[test]
fn the_layer_table_says_what_root_sees() {
    compare(User::Root);
}

#[test]
fn the_layer_table_says_what_a_plain_user_sees() {
    compare(User::Plain);
}

#[test]
fn a_process_group_alone_loses_a_daemon_and_says_so_and_the_next_sweep_ends_it() {
    for user in User::available() {
        for switches in [["--daemon"], ["--own-group"], ["--own-session-child"]] {
            let (stage, report) = ended(Setting { user, layers: GROUP }, &switches);
            assert_eq!(stage.session["strength"]["strength"], "group", "{switches:?}\n{}", stage.story());
            assert_eq!(report["strength"], "group", "{switches:?}\n{}", stage.story());
            assert_eq!(report["verified"], false, "{switches:?}\n{}", stage.story());
            let left = stage.mark.alive();
            assert_eq!(left.len(), 1, "{switches:?} escapes from the group alone\n{}", list(&left));

            assert!(stage.is_on_record(), "{switches:?}: nobody could find it again\n{}", stage.story());
            let swept = stage.sweep();
            assert_eq!(swept["sessions"][0]["ended"][0]["pid"], left[0].pid, "{switches:?}: {swept}");
            stage.assert_nobody_is_left(Duration::from_millis(100));
            assert!(!stage.is_on_record(), "{switches:?}: the session is over\n{}", stage.story());
        }
    }
}

/// Ends a session in the ordinary way. What is left then is left for good.
fn ended(setting: Setting, switches: &[&str]) -> (Stage, Value) {
    let mut stage = Stage::set(setting, &[&SHORT_LADDER[..], &["--ending", "end"]].concat(), switches);
    stage.go();
    stage.assert_owner_exits(OwnerExits::Code(0));
    let report = stage.report();
    assert_eq!(report["layers"], json!(setting.layers.held_by), "held otherwise\n{}", stage.story());
    (stage, report)
}

/// Plays every cell that this user can have, and compares what was seen with what is published.
fn compare(user: User) {
    if !User::available().contains(&user) {
        eprintln!("layer table: {user:?} left out, the tests do not run as root");
        return;
    }
    let rows = ROWS.into_iter().filter(|layers| can_be_had(Setting { user, layers: *layers }));
    let seen: Vec<String> = rows.map(|layers| row(Setting { user, layers })).collect();
    let published = published();
    // The rows that this user cannot have are the other user's to see.
    let is_complete = published.starts_with(HEAD) && published.lines().count() == 2 + ROWS.len();
    let is_right = is_complete && seen.iter().all(|row| published.lines().any(|line| line == row));
    let seen = seen.join("\n");
    assert!(is_right, "published:\n{published}\n\nseen as {user:?}:\n{HEAD}\n{seen}\n");
}

fn can_be_had(setting: Setting) -> bool {
    let sealed_root = setting.user == User::Root && setting.layers.has("landlock");
    let unavailable = setting.unavailable();
    if let Some(why) = unavailable {
        eprintln!("layer table: {setting} left out, {why}");
    }
    !sealed_root && unavailable.is_none()
}

fn row(setting: Setting) -> String {
    let ended = ENDED_COLUMNS.map(|switches| ended_cell(setting, switches)).join(" | ");
    format!("| {} | {ended} | {} |", setting.layers.name, all_killed_cell(setting))
}

fn ended_cell(setting: Setting, switches: &[&str]) -> &'static str {
    let (stage, report) = ended(setting, switches);
    let left = stage.mark.wait_until_none(Duration::from_millis(100)).err();
    match (left, report["verified"] == true) {
        (None, true) => "ended, proven",
        (None, false) => "ended",
        (Some(_), false) => "escapes",
        (Some(left), true) => {
            panic!("{setting} {switches:?}: called empty\n{}\n{}", list(&left), stage.story())
        }
    }
}

fn all_killed_cell(setting: Setting) -> &'static str {
    let owner = [&SHORT_LADDER[..], &["--ending", "hold"]].concat();
    let stage = Stage::set(setting, &owner, &["--clean-daemon"]);
    stage.kill_at_once(&[Who::Owner, Who::Outer, Who::Inner]);
    if stage.mark.wait_until_none(Duration::from_millis(500)).is_ok() {
        return "ended";
    }
    stage.sweep();
    stage.assert_nobody_is_left(Duration::from_millis(100));
    "ended by the next sweep"
}

/// The table in the crate's documentation, without the comment signs.
fn published() -> String {
    const DOCS: &str = include_str!("../../src/lib.rs");
    let (_, rest) = DOCS.split_once("<!-- layers:begin -->").expect("where the table begins");
    let (table, _) = rest.split_once("<!-- layers:end -->").expect("where the table ends");
    let lines = table.lines().map(|line| line.trim_start_matches("//!").trim());
    lines.filter(|line| line.starts_with('|')).collect::<Vec<_>>().join("\n")
}
