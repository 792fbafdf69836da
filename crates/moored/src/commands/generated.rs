//! `moored completions` and `moored man`: made from the definition of the command line itself.

use clap_complete::Shell;

use super::definition;
use crate::exit::{Exit, Failure};
use crate::render;

pub(super) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "moored", &mut script);
    render::raw(&script)?;
    Ok(Exit::Ok)
}

/// The page of moored, or of one verb.
pub(super) fn man(verb: Option<&str>) -> Result<Exit, Failure> {
    let mut all = definition();
    all.build();
    let page = match verb {
        None => all,
        Some(verb) => find(&all, verb)?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    render::raw(&text)?;
    Ok(Exit::Ok)
}

fn find(all: &clap::Command, verb: &str) -> Result<clap::Command, Failure> {
    let found = all.find_subcommand(verb).filter(|found| !found.is_hide_set());
    found.cloned().ok_or_else(|| {
        let known: Vec<&str> = all
            .get_subcommands()
            .filter(|known| !known.is_hide_set())
            .map(|known| known.get_name())
            .collect();
        Failure::usage(format_args!("there is no verb `{verb}` (known verbs: {})", known.join(", ")))
    })
}
