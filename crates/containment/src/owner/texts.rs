//! What the guardians are told in words: the program's possible places, arguments, environment, kept programs, `on_end`.
//!
//! This file decides what these strings are, from the command and our own environment; the board carries them.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::owner::command::Command;
use crate::owner::start_error::StartError;
use crate::shared::board::Word;

/// The strings for the board, in the order of [`Word`], and how many of each kind.
pub(crate) struct Texts {
    pub(crate) bytes: Vec<u8>,
    pub(crate) counts: Vec<(Word, usize)>,
}

impl Texts {
    fn put(&mut self, what: &str, text: &[u8]) -> Result<(), StartError> {
        let text = CString::new(text).map_err(|_| StartError::InvalidInput {
            what: what.to_owned(),
            why: "it has a NUL byte in it",
        })?;
        self.bytes.extend_from_slice(text.as_bytes_with_nul());
        Ok(())
    }

    fn put_all<'a>(
        &mut self,
        word: Word,
        what: &str,
        texts: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), StartError> {
        let mut count = 0;
        for text in texts {
            self.put(what, text)?;
            count += 1;
        }
        self.counts.push((word, count));
        Ok(())
    }

    pub(crate) fn of(command: &Command, record_name: &str, leaf_name: &str) -> Result<Self, StartError> {
        let mut texts = Self { bytes: Vec::new(), counts: Vec::new() };
        texts.put("the record's name", record_name.as_bytes())?;
        texts.put("the leaf's name", leaf_name.as_bytes())?;
        let cwd = command.cwd.as_deref().unwrap_or(Path::new(""));
        texts.put("the working directory", cwd.as_os_str().as_bytes())?;

        let ours: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let environment = server_environment(command, &ours)?;
        let path = environment.iter().find_map(|(name, value)| (name == "PATH").then_some(value.as_os_str()));
        let candidates = candidates(&command.program, path);
        texts.put_all(
            Word::Candidates,
            "the program",
            candidates.iter().map(|c| c.as_os_str().as_bytes()),
        )?;
        let arguments = [&command.program].into_iter().chain(&command.args);
        texts.put_all(Word::Arguments, "an argument", arguments.map(|a| a.as_bytes()))?;
        let environment: Vec<Vec<u8>> = environment.iter().map(joined).collect();
        texts.put_all(Word::Environment, "a variable", environment.iter().map(Vec::as_slice))?;
        texts.put_all(Word::KeepRules, "a kept program", command.keep.iter().map(|k| k.as_bytes()))?;
        let on_end = on_end_argv(command)?;
        texts.put_all(Word::OnEndArguments, "an argument of on_end", on_end.iter().map(|a| a.as_bytes()))?;
        let ours: Vec<Vec<u8>> =
            if on_end.is_empty() { Vec::new() } else { ours.iter().map(joined).collect() };
        texts.put_all(Word::OnEndEnvironment, "a variable", ours.iter().map(Vec::as_slice))?;
        Ok(texts)
    }
}

fn joined((name, value): &(OsString, OsString)) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_bytes()].concat()
}

/// Ours, with the command's changes.
fn server_environment(
    command: &Command,
    ours: &[(OsString, OsString)],
) -> Result<Vec<(OsString, OsString)>, StartError> {
    let kept = ours.iter().filter(|(name, _)| !command.clear_env && !command.env.contains_key(name)).cloned();
    let mut all: Vec<_> = kept.collect();
    for (name, value) in &command.env {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            let what = format!("the variable `{}`", name.to_string_lossy());
            return Err(StartError::InvalidInput { what, why: "it has no proper name" });
        }
        all.extend(value.clone().map(|value| (name.clone(), value)));
    }
    Ok(all)
}

/// Where the program may be, in the order in which execvp looks.
fn candidates(program: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    const NO_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
    if program.is_empty() {
        return Vec::new();
    }
    if program.as_bytes().contains(&b'/') {
        return vec![PathBuf::from(program)];
    }
    let path = path.unwrap_or(OsStr::new(NO_PATH));
    // An empty part means the working directory.
    let folder = |part: &[u8]| PathBuf::from(OsStr::from_bytes(if part.is_empty() { b"." } else { part }));
    path.as_bytes().split(|b| *b == b':').map(|part| folder(part).join(program)).collect()
}

/// The `on_end` command with its program resolved now: later the owner may be dead, and could not be told that it is missing.
pub(crate) fn on_end_argv(command: &Command) -> Result<Vec<OsString>, StartError> {
    let Some((program, rest)) = command.on_end.split_first() else { return Ok(Vec::new()) };
    let path = std::env::var_os("PATH");
    let found = candidates(program, path.as_deref()).into_iter().find(|candidate| candidate.is_file());
    let found = found.and_then(|found| std::path::absolute(found).ok());
    let found =
        found.ok_or_else(|| StartError::NotFound { program: program.to_string_lossy().into_owned() })?;
    Ok([found.into_os_string()].into_iter().chain(rest.iter().cloned()).collect())
}

/// Whether any place that was tried has a file of that name.
pub(crate) fn program_exists(command: &Command) -> bool {
    let changed = command.env.get(OsStr::new("PATH")).cloned();
    let path = changed.unwrap_or_else(|| if command.clear_env { None } else { std::env::var_os("PATH") });
    let base = command.cwd.clone().unwrap_or_default();
    candidates(&command.program, path.as_deref()).iter().any(|candidate| base.join(candidate).exists())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_name_is_looked_for_in_every_part_of_the_path() {
        let found = candidates(OsStr::new("node"), Some(OsStr::new("/a::/b")));
        assert_eq!(found, [Path::new("/a/node"), Path::new("./node"), Path::new("/b/node")]);
        assert_eq!(candidates(OsStr::new("./node"), Some(OsStr::new("/a"))), [Path::new("./node")]);
        assert!(candidates(OsStr::new(""), None).is_empty());
    }

    #[test]
    fn the_environment_is_ours_but_for_what_is_changed() {
        let ours = [("A".into(), "1".into()), ("B".into(), "2".into())];
        let mut command = Command::new("x");
        command.env("B", "3").env_remove("A").env("C", "4");
        let env = server_environment(&command, &ours).expect("proper names");
        assert_eq!(env, [("B".into(), "3".into()), ("C".into(), "4".into())]);
        command.env_clear().env("", "x");
        assert!(matches!(server_environment(&command, &ours), Err(StartError::InvalidInput { .. })));
    }

    #[test]
    fn a_text_with_nul_is_refused_by_name() {
        let mut command = Command::new("x");
        command.arg(OsString::from_vec(b"a\0b".to_vec()));
        let error = Texts::of(&command, "", "").err().expect("refused");
        assert_eq!(error.to_string(), "failed to pass on an argument: it has a NUL byte in it");
    }
}
