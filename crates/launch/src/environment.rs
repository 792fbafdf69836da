//! A server's environment: ours with changes, or one of its own. And ours, as a value, for what has to be known of it
//! without asking the system.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use moored_containment::Command;

/// The variables that a server gets: those of the process that starts it, with changes; or, after
/// [`clear`](Self::clear), no others than are set.
///
/// ```
/// use moored_launch::Environment;
///
/// let ours = [("PATH", "/bin"), ("SSH_AUTH_SOCK", "/s")].map(|(n, v)| (n.into(), v.into())).into();
/// let mut env = Environment::default();
/// env.set("TZ", "UTC").remove("SSH_AUTH_SOCK");
/// let seen = env.over(&ours);
/// assert_eq!(seen.into_iter().collect::<Vec<_>>(), [("PATH".into(), "/bin".into()), ("TZ".into(), "UTC".into())]);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    is_cleared: bool,
    /// A value, or `None` for a variable that is taken out.
    changes: BTreeMap<OsString, Option<OsString>>,
}

impl Environment {
    /// These variables and no others.
    pub fn exactly(variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        let mut exact = Self { is_cleared: true, changes: BTreeMap::new() };
        for (name, value) in variables {
            exact.set(name, value);
        }
        exact
    }

    /// Sets a variable.
    pub fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.changes.insert(name.as_ref().to_os_string(), Some(value.as_ref().to_os_string()));
        self
    }

    /// Takes a variable out.
    pub fn remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        if self.is_cleared {
            self.changes.remove(name.as_ref());
        } else {
            self.changes.insert(name.as_ref().to_os_string(), None);
        }
        self
    }

    /// Begins with no variable at all.
    pub fn clear(&mut self) -> &mut Self {
        *self = Self { is_cleared: true, changes: BTreeMap::new() };
        self
    }

    /// What the server sees when it is started by a process that has these variables.
    #[must_use]
    pub fn over(&self, ours: &BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
        let mut seen = if self.is_cleared { BTreeMap::new() } else { ours.clone() };
        for (name, value) in &self.changes {
            match value {
                Some(value) => seen.insert(name.clone(), value.clone()),
                None => seen.remove(name),
            };
        }
        seen
    }

    pub(crate) fn apply(&self, command: &mut Command) {
        if self.is_cleared {
            command.env_clear();
        }
        for (name, value) in &self.changes {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }
}

impl fmt::Debug for Environment {
    /// Without the values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("is_cleared", &self.is_cleared)
            .field("changed", &self.changes.keys())
            .finish()
    }
}

/// The working directory and the variables of the process that starts servers. The command reads them; this crate does not.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProcessEnv {
    /// The working directory.
    pub cwd: PathBuf,
    /// The variables.
    pub env: BTreeMap<OsString, OsString>,
}

impl fmt::Debug for ProcessEnv {
    /// Without the values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessEnv").field("cwd", &self.cwd).field("variables", &self.env.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> BTreeMap<OsString, OsString> {
        [("A", "1"), ("B", "2")].map(|(name, value)| (name.into(), value.into())).into()
    }

    #[test]
    fn what_is_not_changed_is_ours() {
        assert_eq!(Environment::default().over(&ours()), ours());
        let mut changed = Environment::default();
        changed.set("B", "3").remove("A").remove("C");
        assert_eq!(changed.over(&ours()), [("B".into(), "3".into())].into());
    }

    #[test]
    fn a_cleared_one_has_nothing_of_ours() {
        let exact = Environment::exactly([("C", "4")]);
        assert_eq!(exact.over(&ours()), [("C".into(), "4".into())].into());
        let mut same = Environment::default();
        same.set("A", "9").clear().set("C", "4").remove("A");
        assert_eq!(same, exact, "two ways to say one thing are equal");
    }

    #[test]
    fn no_value_is_shown() {
        let shown = format!(
            "{:?} {:?}",
            Environment::exactly([("TOKEN", "hush")]),
            ProcessEnv { cwd: "/".into(), env: [("KEY".into(), "hush".into())].into() }
        );
        assert!(shown.contains("TOKEN") && shown.contains("KEY") && !shown.contains("hush"), "{shown}");
    }
}
