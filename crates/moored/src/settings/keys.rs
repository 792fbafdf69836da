//! Every key of a settings file, once: its name, how it is written, and what holds when nobody says.

use serde_json::{Value, json};

/// How a value is written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text of its own form.
    Text,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// true or false.
    Switch,
    /// A whole number, or a text.
    Number,
    /// Several texts.
    List,
}

/// One key of `[run]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// As in the file, and as the flag without its dashes.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What holds when nobody says; none where nothing does.
    pub(crate) default: Option<&'static str>,
    pub(crate) about: &'static str,
}

const fn key(name: &'static str, kind: Kind, default: Option<&'static str>, about: &'static str) -> Key {
    Key { name, kind, default, about }
}

/// All of them, in the order in which they are shown.
pub(crate) const KEYS: &[Key] = &[
    key("name", Kind::Text, None, "what to call the server; from its command unless given"),
    key("grace", Kind::Text, Some("2s"), "how long it may take to finish after its input has ended"),
    key("kill-after", Kind::Text, Some("2s"), "how long after SIGTERM it is killed"),
    key("idle", Kind::Text, Some("auto"), "when it is put to sleep: auto, off, or after so much silence"),
    key("max-lifetime", Kind::Text, Some("off"), "start it afresh after so long, once it is idle"),
    key("max-instances", Kind::Number, Some("off"), "how many instances of a server may be awake at once"),
    key(
        "over-limit",
        Kind::OneOf(&["hibernate", "stop-oldest", "refuse"]),
        Some("hibernate"),
        "what to do when there would be more",
    ),
    key("restart", Kind::OneOf(&["never", "on-crash"]), Some("never"), "what to do when it crashes"),
    key("server-version", Kind::Text, None, "its version, instead of the one that it gives"),
    key("pid-file", Kind::Text, None, "where to write a PID file"),
    key("info-tool", Kind::Switch, Some("false"), "add the tool get_server_info to the server's own"),
    key("keep", Kind::List, None, "programs that are meant to outlive the session"),
    key(
        "containers",
        Kind::OneOf(&["off", "report", "attached", "session"]),
        Some("off"),
        "what to do about containers that it starts",
    ),
    key("sealed", Kind::Switch, Some("false"), "hold it in a Landlock domain too"),
    key("strict", Kind::Switch, Some("false"), "hold it in a PID namespace too"),
    key("direct", Kind::Switch, Some("false"), "give it our own stdio and only watch"),
    key("log-file", Kind::Text, None, "where its stderr is kept; in the state folder unless given"),
    key("line-limit", Kind::Number, Some("64MB"), "the longest message that is passed on"),
];

/// The JSON Schema of a settings file.
pub(crate) fn schema() -> Value {
    let properties: serde_json::Map<String, Value> =
        KEYS.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "moored settings",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "run": {
                "description": "rules for the servers that `moored run` starts",
                "type": "object",
                "additionalProperties": false,
                "properties": properties,
            },
        },
    })
}

fn property(key: &Key) -> Value {
    let mut property = match key.kind {
        Kind::Text => json!({"type": "string"}),
        Kind::OneOf(values) => json!({"enum": values}),
        Kind::Switch => json!({"type": "boolean"}),
        Kind::Number => json!({"type": ["integer", "string"]}),
        Kind::List => json!({"type": "array", "items": {"type": "string"}}),
    };
    property["description"] = key.about.into();
    if let Some(default) = key.default {
        property["default"] = match key.kind {
            Kind::Switch => Value::Bool(default == "true"),
            _ => default.into(),
        };
    }
    property
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_option_of_run_is_a_key_and_the_other_way_round() {
        let command = crate::args::Typed::command();
        let run = command.find_subcommand("run").expect("a verb");
        let mut flags: Vec<&str> = run.get_arguments().filter_map(|arg| arg.get_long()).collect();
        // It says where the keys are.
        flags.retain(|flag| *flag != "config");
        let mut keys: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        flags.sort_unstable();
        keys.sort_unstable();
        assert_eq!(flags, keys);
    }

    #[test]
    fn the_schema_has_every_key() {
        let schema = schema();
        let properties = schema["properties"]["run"]["properties"].as_object().expect("an object");
        assert_eq!(properties.len(), KEYS.len());
        assert_eq!(properties["sealed"]["default"], false);
    }
}
