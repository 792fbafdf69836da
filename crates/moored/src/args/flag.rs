//! What a flag is: one value from which its option, its variable, its key in a settings file and its way of being read are
//! made. To add a flag is to add one entry to a list of [`flags!`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgAction, ArgMatches, value_parser};

/// A flag whose value is a `T`.
pub(crate) struct Flag<T: 'static> {
    /// As it is typed, without the dashes; its key in a settings file is the same.
    name: &'static str,
    value: Value<T>,
    /// A phrase for help and schema, without a full stop.
    help: &'static str,
    default: Unless,
    offered: Offered,
    /// A variable besides `MOORED_NAME`, which stands before it.
    other_variable: Option<&'static str>,
}

/// How a value is written, and what reads it.
pub(crate) enum Value<T: 'static> {
    /// A text of its own form, which help calls by this word.
    Text(&'static str, fn(&str) -> Result<T, String>),
    /// The same; a settings file may have a whole number instead.
    Number(&'static str, fn(&str) -> Result<T, String>),
    /// One of these.
    OneOf(&'static str, &'static [(&'static str, T)]),
    /// On when it is given alone.
    Switch(fn(&str) -> Result<T, String>),
    /// A path: seen from the working folder, or from the file in which it stands.
    Path(fn(PathBuf) -> T),
    /// Several words; in a variable separated by commas.
    List(&'static str, fn(Vec<OsString>) -> T),
}

/// What holds when no flag, variable or file gives a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unless {
    /// Nothing.
    Nothing,
    /// This value.
    Value(&'static str),
    /// What these words say.
    Described(&'static str),
}

/// Where a flag is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// Everywhere.
    Openly,
    /// Everywhere, but help does not show it.
    Hidden,
    /// As a variable only: for tests.
    VariableOnly,
}

/// How a value is written, for what does not read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    OneOf(Vec<&'static str>),
    Switch,
    List,
}

impl<T> Flag<T> {
    pub(crate) const fn new(name: &'static str, value: Value<T>, help: &'static str) -> Self {
        let (default, offered) = (Unless::Nothing, Offered::Openly);
        Self { name, value, help, default, offered, other_variable: None }
    }

    /// With this value unless another is given.
    pub(crate) const fn default(mut self, text: &'static str) -> Self {
        self.default = Unless::Value(text);
        self
    }

    /// With words for what holds unless it is given.
    pub(crate) const fn described_default(mut self, words: &'static str) -> Self {
        self.default = Unless::Described(words);
        self
    }

    pub(crate) const fn offered(mut self, offered: Offered) -> Self {
        self.offered = offered;
        self
    }

    /// With another variable that gives it too.
    pub(crate) const fn other_variable(mut self, name: &'static str) -> Self {
        self.other_variable = Some(name);
        self
    }
}

impl<T: Clone> Flag<T> {
    /// Reads what was given for it; `folder` is where relative paths begin. An empty list of words is nothing.
    pub(crate) fn read(&self, words: &[OsString], folder: &Path) -> Result<Option<T>, String> {
        if let Value::List(_, read) = self.value {
            return Ok(Some(read(words.to_vec())));
        }
        let Some(word) = words.first() else { return Ok(None) };
        if let Value::Path(read) = self.value {
            return Ok(Some(read(folder.join(word))));
        }
        let text = word.to_str().ok_or_else(|| "it is no text".to_owned())?;
        let value = match self.value {
            Value::Text(_, read) | Value::Number(_, read) | Value::Switch(read) => read(text)?,
            Value::OneOf(_, choices) => one_of(choices, text)?,
            Value::Path(_) | Value::List(..) => return Ok(None),
        };
        Ok(Some(value))
    }
}

fn one_of<T: Clone>(choices: &[(&str, T)], text: &str) -> Result<T, String> {
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| value.clone()).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// A flag with its value type erased, for lists of flags.
pub(crate) trait AnyFlag: Sync {
    fn name(&self) -> &'static str;
    fn help(&self) -> &'static str;
    fn kind(&self) -> Kind;
    /// What help calls its value.
    fn value_name(&self) -> &'static str;
    fn unless_given(&self) -> Unless;
    fn where_offered(&self) -> Offered;
    /// The variables that give it, the strongest first.
    fn variables(&self) -> Vec<String>;

    /// The value that holds unless another is given.
    fn default_value(&self) -> Option<&'static str> {
        match self.unless_given() {
            Unless::Value(text) => Some(text),
            Unless::Nothing | Unless::Described(_) => None,
        }
    }

    /// The same flag for clap; none if it cannot be typed.
    fn arg(&self) -> Option<Arg> {
        let help = match self.unless_given() {
            Unless::Nothing => self.help().to_owned(),
            // A switch that is off is no news.
            Unless::Value(_) if self.kind() == Kind::Switch => self.help().to_owned(),
            Unless::Value(text) | Unless::Described(text) => format!("{} [default: {text}]", self.help()),
        };
        let arg = Arg::new(self.name()).long(self.name()).value_name(self.value_name()).help(help);
        let arg = match self.kind() {
            Kind::OneOf(choices) => arg.value_parser(PossibleValuesParser::new(choices).map(OsString::from)),
            _ => arg.value_parser(value_parser!(OsString)),
        };
        let arg = match self.kind() {
            Kind::Switch => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
            Kind::List => arg.num_args(1..).action(ArgAction::Append),
            // `--flag -5` is a value, whether the flag takes it or not.
            Kind::Number => arg.allow_negative_numbers(true),
            _ => arg,
        };
        match self.where_offered() {
            Offered::Openly => Some(arg),
            Offered::Hidden => Some(arg.hide(true)),
            Offered::VariableOnly => None,
        }
    }
}

impl<T: Sync> AnyFlag for Flag<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn kind(&self) -> Kind {
        match &self.value {
            Value::Text(..) | Value::Path(_) => Kind::Text,
            Value::Number(..) => Kind::Number,
            Value::OneOf(_, choices) => Kind::OneOf(choices.iter().map(|(name, _)| *name).collect()),
            Value::Switch(_) => Kind::Switch,
            Value::List(..) => Kind::List,
        }
    }

    fn value_name(&self) -> &'static str {
        match self.value {
            Value::Text(name, _) | Value::Number(name, _) | Value::OneOf(name, _) | Value::List(name, _) => {
                name
            }
            Value::Switch(_) => "BOOL",
            Value::Path(_) => "PATH",
        }
    }

    fn unless_given(&self) -> Unless {
        self.default
    }

    fn where_offered(&self) -> Offered {
        self.offered
    }

    fn variables(&self) -> Vec<String> {
        let own = format!("MOORED_{}", self.name.to_ascii_uppercase().replace('-', "_"));
        std::iter::once(own).chain(self.other_variable.map(str::to_owned)).collect()
    }
}

/// What was typed for each flag, unread.
pub(crate) type TypedValues = BTreeMap<&'static str, Vec<OsString>>;

/// What was typed for these flags.
pub(crate) fn typed_values(flags: &[&dyn AnyFlag], matches: &ArgMatches) -> TypedValues {
    let typed =
        flags.iter().filter(|flag| flag.where_offered() != Offered::VariableOnly).filter_map(|flag| {
            let values = matches.get_many::<OsString>(flag.name())?;
            Some((flag.name(), values.cloned().collect()))
        });
    typed.collect()
}

/// Defines flags, the list of them, and a type that holds what was typed for them and can be flattened into the options of
/// a command:
///
/// ```ignore
/// flags! {
///     RUN, RunFlags, shared: [], global: false;
///
///     GRACE: Flag<Duration> = Flag::new("grace", Value::Text("DURATION", duration), "how long …").default("2s");
/// }
/// ```
///
/// Flags of another list are named in the brackets, so that two commands share one definition. A global flag is one of every
/// command.
macro_rules! flags {
    ($list:ident, $typed:ident, shared: [$($shared:ident),*], global: $global:literal;
     $($flag:ident: $type:ty = $definition:expr;)*) => {
        $(pub(crate) static $flag: $type = $definition;)*

        /// All of them, in the order in which they are shown.
        pub(crate) static $list: &[&dyn crate::args::flag::AnyFlag] = &[$(&$shared,)* $(&$flag),*];

        /// What was typed for them.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $typed(pub(crate) crate::args::flag::TypedValues);

        impl clap::FromArgMatches for $typed {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(crate::args::flag::typed_values($list, matches)))
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                self.0.extend(crate::args::flag::typed_values($list, matches));
                Ok(())
            }
        }

        impl clap::Args for $typed {
            fn augment_args(command: clap::Command) -> clap::Command {
                let args = $list.iter().filter_map(|flag| flag.arg());
                let heading = if $global { Some("Global options") } else { None };
                args.fold(command, |command, arg| command.arg(arg.global($global).help_heading(heading)))
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                Self::augment_args(command)
            }
        }
    };
}

pub(super) use flags;
