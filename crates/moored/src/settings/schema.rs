//! The JSON Schema of a settings file, made from the flags.

use serde_json::{Value, json};

use super::files::{SECTIONS, is_key};
use crate::args::{AnyFlag, Kind};

/// The JSON Schema of a settings file.
pub(crate) fn schema() -> Value {
    let sections = SECTIONS.iter().map(|section| {
        let keys = section.flags.iter().filter(|flag| is_key(**flag));
        let properties: serde_json::Map<String, Value> =
            keys.map(|flag| (flag.name().to_owned(), property(*flag))).collect();
        let about = json!({
            "description": section.about,
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
        });
        (section.name.to_owned(), about)
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "moored settings",
        "type": "object",
        "additionalProperties": false,
        "properties": sections.collect::<serde_json::Map<String, Value>>(),
    })
}

fn property(flag: &dyn AnyFlag) -> Value {
    let mut property = match flag.kind() {
        Kind::Text => json!({"type": "string"}),
        Kind::OneOf(values) => json!({"enum": values}),
        Kind::Switch => json!({"type": "boolean"}),
        Kind::Number => json!({"type": ["integer", "string"]}),
        Kind::List => json!({"type": "array", "items": {"type": "string"}}),
    };
    property["description"] = flag.help().into();
    if let Some(default) = flag.default_value() {
        property["default"] = match flag.kind() {
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
        let schema = schema();
        let mut keys: Vec<&str> = schema["properties"]["run"]["properties"]
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        flags.sort_unstable();
        keys.sort_unstable();
        assert_eq!(flags, keys);
        assert_eq!(schema["properties"]["run"]["properties"]["sealed"]["default"], false);
    }
}
