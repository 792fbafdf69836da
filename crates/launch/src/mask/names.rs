//! Which names sound secret, and which programs take a password in a short option.

/// Anywhere in a name.
const PARTS: [&str; 10] = [
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASSCODE",
    "AUTHORIZATION",
    "CREDENTIAL",
    "COOKIE",
];
/// As the last word of a name: within other words, such as `--pattern` or `--pass-through`, they mean nothing.
const LAST_WORDS: [&str; 11] =
    ["PASS", "PASSIN", "PASSOUT", "PWD", "PW", "PAT", "SIG", "SIGNATURE", "AUTH", "JWT", "BEARER"];
/// Words that end like one of those by chance.
const HARMLESS: [&str; 3] = ["BYPASS", "COMPASS", "MULTIPASS"];

/// Programs, and their short options whose value is a password or has one.
const LOGINS: [(&[&str], &[&str]); 9] = [
    (&["mysql", "mysqldump", "mysqladmin", "mysqlsh", "mysqlimport", "mariadb", "mariadb-dump"], &["-p"]),
    (&["psql", "pgcli", "mycli", "sshpass", "cqlsh", "influx", "rabbitmqadmin", "7z", "7za"], &["-p"]),
    (&["mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"], &["-p"]),
    (&["redis-cli", "valkey-cli", "keydb-cli", "http", "https"], &["-a"]),
    (&["sqlcmd", "bcp", "mosquitto_pub", "mosquitto_sub", "unzip", "zip"], &["-P"]),
    (&["ldapsearch", "ldapmodify", "ldapadd"], &["-w"]),
    (&["curl"], &["-u", "-b"]),
    (&["smbclient"], &["-U"]),
    // `docker login`, `oc login`, `az login` …
    (&["login"], &["-p"]),
];

/// Whether the value of a variable, key or option of this name is a secret.
pub(super) fn sounds_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if PARTS.iter().any(|part| upper.contains(part)) {
        return true;
    }
    // `DB_PASS_1` is a `PASS`.
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-_.".contains(c));
    let word = last_word(name).to_ascii_uppercase();
    let ends_so = (word.ends_with("PASS") || word.ends_with("PWD")) && !HARMLESS.contains(&word.as_str());
    ends_so || LAST_WORDS.contains(&word.as_str())
}

/// What comes after the last `-`, `_` or `.`, or begins with the last capital after a small letter.
fn last_word(name: &str) -> &str {
    let begin = name.rfind(['-', '_', '.']).map_or(0, |at| at + 1);
    let word = &name[begin..];
    let small_then_capital = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    word.as_bytes().windows(2).rposition(small_then_capital).map_or(word, |at| &word[at + 1..])
}

/// An option whose value is the next word.
pub(super) fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains(['=', ':']) && sounds_secret(word)
}

/// A shell's `-c`, also as `-lc`: the next word is a line.
pub(super) fn is_script_option(word: &str) -> bool {
    word.len() <= 4 && word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
}

/// The short options of this program that take a password, if it is one that logs in.
pub(super) fn password_options(program: &str) -> Option<&'static [&'static str]> {
    let name = program.rsplit(['/', '\\', ';', '&', '|', '(', '`']).next()?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    LOGINS.iter().find(|(programs, _)| programs.contains(&name)).map(|(_, options)| *options)
}
