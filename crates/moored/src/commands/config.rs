//! `moored config`: the effective settings with their origin, where they are looked for, and whether they are sound.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::args::{AnyFlag, ConfigFile, ConfigVerb, Kind, Offered, RUN, RunFlags};
use crate::exit::{Exit, Failure};
use crate::render::{self, Table};
use crate::settings::{self, Layers, Origin, Places, SettingsFile};

pub(super) fn run(verb: ConfigVerb) -> Result<Exit, Failure> {
    let env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let places = |config: ConfigFile| Places::of(config.file.as_deref(), &cwd, &env);
    let done = match verb {
        ConfigVerb::Show { json, config } => show(&env, &cwd, &places(config), json),
        ConfigVerb::Path { json, config } => path(&places(config), json),
        ConfigVerb::Check { only: Some(file), .. } => {
            settings::read_named(&file).and_then(|file| check(vec![file]))
        }
        ConfigVerb::Check { only: None, config } => places(config).read().and_then(check),
        ConfigVerb::Schema => Ok(render::raw(format!("{:#}\n", settings::schema()).as_bytes())?),
    };
    // Only `run` passes on a code that says who failed.
    done.map(|()| Exit::Ok).map_err(|failure| failure.exit(Exit::Failure))
}

/// One setting, as it is shown.
#[derive(Debug, Serialize)]
struct Setting {
    key: String,
    value: Option<serde_json::Value>,
    origin: &'static str,
    /// The variable or the file that gave it.
    from: Option<String>,
    #[serde(skip)]
    shown_origin: String,
}

fn show(env: &BTreeMap<OsString, OsString>, cwd: &Path, places: &Places, json: bool) -> Result<(), Failure> {
    let layers = Layers::of_run(RunFlags::default(), env, places.read()?, cwd);
    if let Some(file) = places.left_out(cwd) {
        render::say(&format!(
            "moored: `{}` is not read unless `--config moored.toml` names it",
            file.display()
        ));
    }
    let shown = RUN.iter().filter(|flag| flag.where_offered() != Offered::VariableOnly);
    let settings: Vec<Setting> = shown.map(|flag| setting(*flag, &layers)).collect();
    if json {
        return Ok(render::json("settings", &settings)?);
    }
    let mut table = Table::new(&["KEY", "VALUE", "ORIGIN"]);
    for setting in settings {
        let value = setting.value.map_or_else(
            || "-".to_owned(),
            |value| match value {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            },
        );
        table.row([format!("run.{}", setting.key), value, setting.shown_origin]);
    }
    Ok(render::out(&table.text())?)
}

fn setting(flag: &dyn AnyFlag, layers: &Layers) -> Setting {
    let given = layers.given(flag);
    let origin = given.as_ref().map_or(Origin::Default, |given| given.origin.clone());
    let values: Vec<String> = match given {
        Some(given) => given.values.iter().map(|value| value.to_string_lossy().into_owned()).collect(),
        None => flag.default_value().into_iter().map(str::to_owned).collect(),
    };
    let value = match flag.kind() {
        Kind::List => Some(values.into()),
        _ => values.into_iter().next().map(Into::into),
    };
    let (name, from) = match &origin {
        Origin::Flag => ("flag", None),
        Origin::Env(variable) => ("env", Some(variable.clone())),
        Origin::File(path) => ("file", Some(path.display().to_string())),
        Origin::Default => ("default", None),
    };
    Setting { key: flag.name().to_owned(), value, origin: name, from, shown_origin: origin.to_string() }
}

/// One place, as it is shown.
#[derive(Debug, Serialize)]
struct Place<'a> {
    path: &'a Path,
    exists: bool,
}

fn path(places: &Places, json: bool) -> Result<(), Failure> {
    let places: Vec<Place<'_>> = places.paths().map(|path| Place { path, exists: path.exists() }).collect();
    if json {
        return Ok(render::json("files", &places)?);
    }
    let mut table = Table::new(&["FILE", "EXISTS"]);
    for place in places {
        let exists = if place.exists { "yes" } else { "no" };
        table.row([place.path.display().to_string(), exists.to_owned()]);
    }
    Ok(render::out(&table.text())?)
}

/// Checks each, tells all that is wrong, and fails if anything is.
fn check(files: Vec<SettingsFile>) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for file in files {
        let place = file.path.display().to_string();
        wrong.extend(file.unknown.iter().map(|what| format!("`{place}`: {what}")));
        settings::check(file)?;
        render::out(&format!("checked {place}\n"))?;
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::to(format_args!("check the settings: {}", wrong.join("; ")))
        .hint("moored config schema shows all keys"))
}
