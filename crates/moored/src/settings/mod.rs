//! What was typed, and what is written in the environment and the files, becomes what is meant.
//!
//! A flag beats a `MOORED_*` variable, which beats a file, which beats the default; of the files the one that `--config`
//! names wins, then the user's, then the machine's, value by value. Each value knows where it came from, so that a wrong one
//! can be found.
//!
//! - `layers`: that order;
//! - `files`: where the files are, and how they are read;
//! - `run`: what the values of a `run` mean together;
//! - `schema`: the JSON Schema of a settings file;
//! - `nearest`: what was meant by a name that is not known.
//!
//! Which settings there are, and how each is written, is in `args`, once.

mod files;
mod layers;
mod nearest;
mod run;
mod schema;

pub(crate) use files::{Places, SettingsFile, read_named};
pub(crate) use layers::{Layers, Origin, unknown_variables};
pub(crate) use run::{RunSettings, check};
pub(crate) use schema::schema;
