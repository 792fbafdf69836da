//! One verb, one file. What a verb does is the operator's or the supervisor's; here it is asked for, and its answer printed.

mod config;
mod demo;
mod events;
mod generated;
mod inspect;
mod logs;
mod ps;
mod run;
mod stop;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use moored_operator::{FindError, HistoryError, ListError, Operator, OperatorError, TargetError};

use crate::args::{Typed, Verb, written_out};
use crate::exit::{Exit, Failure};
use crate::logging;
use crate::render;

/// Does what was typed.
pub(crate) fn run_typed(typed: impl IntoIterator<Item = OsString>) -> Result<Exit, Failure> {
    let typed = written_out(typed);
    match Typed::try_parse_from(&typed) {
        Ok(typed) => {
            logging::begin(typed.global)?;
            run_verb(typed.verb)
        }
        Err(error) => not_run(&error, &typed),
    }
}

fn run_verb(verb: Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Run(args) => run::run(*args),
        Verb::Ps(args) => ps::run(&args),
        Verb::Inspect(args) => inspect::run(&args),
        Verb::Stop(args) => stop::run(&args),
        Verb::Logs(args) => logs::run(&args),
        Verb::Events(args) => events::run(&args),
        Verb::Config(verb) => config::run(verb),
        Verb::Demo => demo::run(),
        Verb::Completions { shell } => generated::completions(shell),
        Verb::Man { verb } => generated::man(verb.as_deref()),
        Verb::DemoPart(args) => demo::play(args.part),
        Verb::RemoveDeadPidFile { path } => run::remove_dead_pid_file(&path),
    }
}

/// Help and version were asked for; anything else was not understood.
fn not_run(error: &clap::Error, typed: &[OsString]) -> Result<Exit, Failure> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        error.print()?;
        return Ok(Exit::Ok);
    }
    // An error means that stderr is closed: there is no place to say so.
    let _ = error.print();
    let of_run = typed.get(1).is_some_and(|verb| verb == "run");
    if of_run && matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument) {
        render::say("\nhint: the server's command comes after `--`: moored run [OPTIONS] -- CMD [ARG…]");
    }
    Ok(Exit::Usage)
}

/// The whole definition, for what is made from it.
fn definition() -> clap::Command {
    Typed::command()
}

impl From<OperatorError> for Failure {
    fn from(error: OperatorError) -> Self {
        Self::to(error)
    }
}

impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Self {
        Self::to(error)
    }
}

impl From<ListError> for Failure {
    fn from(error: ListError) -> Self {
        Self::to(error)
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Find(error) => error.into(),
            TargetError::Several { ref ids, .. } => {
                let hint = format!("give one of the ids: {}", ids.join(", "));
                Self::to(error).hint(hint)
            }
            error => Self::to(error),
        }
    }
}

/// The operator of the user who calls; tells what is wrong with the folders of live sessions.
fn operator() -> Operator {
    let operator = Operator::of_user();
    say_all(operator.warning().map(str::to_owned).as_slice());
    operator
}

/// Tells the user what a verb ran into beside its answer.
fn say_all(warnings: &[String]) {
    for warning in warnings {
        render::say(&format!("moored: {warning}"));
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        let hint = match &error {
            FindError::NotFound { known, .. } if known.is_empty() => {
                "no server is running (moored ps -a)".to_owned()
            }
            FindError::NotFound { known, .. } => format!("known names: {}", known.join(", ")),
            FindError::Ambiguous { .. } => "give more of the id".to_owned(),
        };
        Self::Told { message: error.to_string(), hint: Some(hint), exit: Exit::Failure }
    }
}
