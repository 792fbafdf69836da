//! Every place in which a secret is known, as a table; and as properties: a secret in any of these places is never in the
//! output, and ordinary arguments stay as they are.

use proptest::prelude::*;

use super::*;

fn line(words: &[&str]) -> String {
    masked(&words.iter().map(Into::into).collect::<Vec<_>>()).join(" ")
}

#[test]
fn f08_a_secret_is_masked_wherever_it_is_known_by_its_place_or_its_shape() {
    let table: &[(&[&str], &str)] = &[
        // The value of an option, as the next word or within.
        (&["srv", "--pass", "S3", "--port", "1"], "srv --pass *** --port 1"),
        (&["srv", "--pwd=S3", "x"], "srv --pwd=*** x"),
        (&["srv", "--db-pass", "S3"], "srv --db-pass ***"),
        (&["srv", "--passphrase", "a b c"], "srv --passphrase ***"),
        (&["srv", "--passphrase=correct horse battery"], "srv --passphrase=***"),
        (&["srv", "--pat", "S3"], "srv --pat ***"),
        (&["srv", "--cookie", "sid=S3; b=c"], "srv --cookie ***"),
        (&["srv", "--cookie=sid=S3; b=c"], "srv --cookie=***"),
        (&["srv", "--api-key=a,b;c&d"], "srv --api-key=***"),
        (&["env", "MYSQL_PWD=a&b", "DB_PASS_1=S3", "srv"], "env MYSQL_PWD=*** DB_PASS_1=*** srv"),
        // A value that begins with a dash, and an option that is taken for one.
        (&["srv", "--token", "-S3", "x"], "srv --token *** x"),
        (&["srv", "--token", "--S3", "x"], "srv --token *** x"),
        (&["srv", "--token", "--api-key", "S3", "x"], "srv --token *** *** x"),
        (&["sh", "-c", "srv --token -S3 x"], "sh -c srv --token *** x"),
        // Short options of programs that log in.
        (&["mysql", "-u", "root", "-p", "S3", "db"], "mysql -u root -p *** db"),
        (&["/usr/bin/mysql", "-uroot", "-pS3", "db"], "/usr/bin/mysql -uroot -p*** db"),
        (&["docker", "exec", "c", "mysqldump", "-pS3"], "docker exec c mysqldump -p***"),
        (&["psql", "-p", "S3"], "psql -p ***"),
        (&["redis-cli", "-h", "h", "-a", "S3"], "redis-cli -h h -a ***"),
        (&["mongosh", "-u", "u", "-p", "S3"], "mongosh -u u -p ***"),
        (&["sshpass", "-pS3", "ssh", "h"], "sshpass -p*** ssh h"),
        (&["sshpass", "-p", "-S3", "ssh", "h"], "sshpass -p *** ssh h"),
        (&["curl", "-u", "me:S3", "http://h/"], "curl -u *** http://h/"),
        (&["docker", "login", "-u", "u", "-p", "S3"], "docker login -u u -p ***"),
        (&["docker", "run", "-p", "80:80", "img"], "docker run -p 80:80 img"),
        (&["bash", "-lc", "cd /x&&mysql -u r -pS3 db"], "bash -lc cd /x&&mysql -u r -p*** db"),
        (&["ssh", "h", "sh -c 'mysql -p S3 db'"], "ssh h sh -c 'mysql -p *** db'"),
        // Headers.
        (&["srv", "--header", "X-Any: Bearer S3"], "srv --header X-Any: Bearer ***"),
        (&["srv", "-H", "x-auth: bearer S3"], "srv -H x-auth: ***"),
        (&["srv", "-H", "Cookie: a=S3; b=S4"], "srv -H Cookie: ***"),
        (
            &["srv", "--header", "Authorization:", "Bearer", "S3", "x"],
            "srv --header Authorization: *** *** x",
        ),
        (&["srv", "--header", "X-Any:", "Bearer", "S3", "x"], "srv --header X-Any: Bearer *** x"),
        (
            &["sh", "-c", "curl -H \"X-Any: Bearer S3\" http://h"],
            "sh -c curl -H \"X-Any: Bearer ***\" http://h",
        ),
        // Addresses.
        (&["srv", "postgres://u:S3@h:5432/db"], "srv postgres://u:***@h:5432/db"),
        (&["srv", "redis://:S3@h"], "srv redis://:***@h"),
        (&["srv", "--dsn=amqp://u:a@b:c@h/v?x=1"], "srv --dsn=amqp://u:***@h/v?x=1"),
        (&["srv", "postgres://u:a/b?c#d@h/db"], "srv postgres://u:***@h/db"),
        (&["srv", "mongodb://u:S3@h,mongodb://v:S4@i"], "srv mongodb://u:***@h,mongodb://v:***@i"),
        (&["srv", "https://0123456789abcdef@h/x"], "srv https://***@h/x"),
        (&["srv", "https://h/f?a=1&sig=S%2B3&b=2"], "srv https://h/f?a=1&sig=***&b=2"),
        (&["srv", "https://h/mcp?token=a,b;c"], "srv https://h/mcp?token=***"),
        // Shapes.
        (&["srv", "ghp_abcDEF123456"], "srv ***"),
        (&["srv", "x=github_pat_11AB_cd,y"], "srv x=***,y"),
        (&["srv", "sk-proj-abc123DEF"], "srv ***"),
        (&["srv", "xoxb-12-34-abc"], "srv ***"),
        (&["srv", "AKIAIOSFODNN7EXAMPLE"], "srv ***"),
        (&["srv", "git+https://ghp_abcDEF1@github.com/o/r"], "srv git+https://***@github.com/o/r"),
        // Objects and connection strings.
        (&["srv", r#"{"password": "a\"S3", "b": 1}"#], r#"srv {"password": ***, "b": 1}"#),
        (&["srv", "{'token': 'S3', 'b': 1}"], "srv {'token': ***, 'b': 1}"),
        (&["srv", r#"{\"apiKey\":\"S3\",\"b\":1}"#], r#"srv {\"apiKey\":***,\"b\":1}"#),
        (&["srv", r#"{"tokens": ["S3", "S4"], "b": 1}"#], r#"srv {"tokens": ***, "b": 1}"#),
        (&["srv", "Server=h;Password=a,b c;Database=d"], "srv Server=h;Password=***;Database=d"),
    ];
    for (words, expected) in table {
        assert_eq!(line(words), *expected, "{words:?}");
    }
}

#[test]
fn f08_ordinary_words_stay_as_they_are() {
    let ordinary: &[&[&str]] = &[
        &["npx", "-y", "@upstash/context7-mcp@1.2.3"],
        &["srv", "--pattern", "x", "--path", "/p", "--patch", "1", "--signal", "TERM", "--author", "me"],
        &["srv", "--pass-through", "x", "--bypass", "y", "--design", "z", "--compass", "n"],
        &["ssh", "-p", "2222", "git@github.com"],
        &["srv", "https://h:8080/a@1.2", "http://[::1]:80/x@y", "ssh://git@github.com/x", "https://me@h/"],
        &["srv", "https://token.example.com:8443/x", "--token-type"],
        &["srv", "--auth-type", "bearer", "--port", "80"],
        &["srv", "sk-learn", "sk-learn-mcp", "disk-usage1234", "task-sk", "AKIA", "--locale=sk-SK"],
        &["sh", "-c", "echo \"it's\" 'a b'  && srv --port 1; don't"],
        &["srv", ""],
        &[],
    ];
    for words in ordinary {
        assert_eq!(line(words), words.join(" "), "{words:?}");
    }
}

#[test]
fn f08_a_sentence_has_no_secret_either() {
    assert_eq!(
        masked_text("failed to start `srv --api-key S3`: gone"),
        "failed to start `srv --api-key *** gone"
    );
    assert_eq!(masked_text("cannot reach postgres://u:S3@h"), "cannot reach postgres://u:***@h");
    assert_eq!(masked_text("`srv` crashes again and again"), "`srv` crashes again and again");
}

/// Where a secret can stand: what is before it and after it within its word, the words before, and which alphabet
/// of secrets can stand there.
fn places() -> Vec<(&'static [&'static str], &'static str, &'static str, &'static str)> {
    const ANY: &str = "[!-~]{6,24}";
    const URL: &str = "[A-Za-z0-9._~!$&'()*+,;=:@-]{6,24}";
    const QUERY: &str = "[A-Za-z0-9._~%+/=-]{6,24}";
    const HEADER: &str = "[A-Za-z0-9._~+/-]{6,24}";
    const SHAPE: &str = "[A-Za-z0-9]{6,10}[A-Z][0-9]{2}";
    const LINE: &str = "[A-Za-z0-9._~%+/=:@-]{6,24}";
    vec![
        (&["srv", "--pass"], "", "", ANY),
        (&["srv", "--pwd"], "", "", ANY),
        (&["srv", "--passphrase"], "", "", ANY),
        (&["srv", "--pat"], "", "", ANY),
        (&["srv", "--cookie"], "", "", ANY),
        (&["srv", "--api-key"], "-", "", ANY),
        (&["srv", "--api-key"], "--", "", ANY),
        (&["srv"], "--password=", "", ANY),
        (&["docker", "run", "-e"], "GH_TOKEN=", "", ANY),
        (&["docker", "run"], "--env=DB_PASS=", "", ANY),
        (&["mysql", "-u", "root", "-p"], "", "", ANY),
        (&["mysql", "-u", "root"], "-p", "", ANY),
        (&["sshpass", "-p"], "", "", ANY),
        (&["mongosh", "-p"], "", "", ANY),
        (&["redis-cli", "-a"], "", "", ANY),
        (&["srv"], "postgres://u:", "@h:5432/db?x=1", URL),
        (&["srv"], "--url=redis://:", "@h", URL),
        (&["srv"], "https://h/?a=1&sig=", "&b=2", QUERY),
        (&["srv"], "https://h/?token=", "", QUERY),
        (&["srv", "--header"], "X-Any: Bearer ", "", HEADER),
        (&["srv", "--header"], "Authorization: Bearer ", "", ANY),
        (&["srv", "-H"], "Cookie: a=", "; b=1", ANY),
        (&["srv"], "{\"token\": \"", "\", \"b\": 1}", HEADER),
        (&["srv"], "ghp_", "", SHAPE),
        (&["srv"], "--x=github_pat_", "", SHAPE),
        (&["srv"], "sk-", "", SHAPE),
        (&["srv"], "a,xoxb-", ",b", SHAPE),
        (&["srv"], "AKIA", "", "[A-Z0-9]{16}"),
        (&["sh", "-c"], "srv --token ", " --port 1", LINE),
        (&["sh", "-c"], "TOKEN=", " srv --port 1", LINE),
        (&["sh", "-c"], "cd /x && mysql -p", " db", LINE),
    ]
}

proptest! {
    #[test]
    fn f08_a_secret_in_any_place_is_never_shown(
        (place, secret) in (0..places().len()).prop_flat_map(|at| (Just(at), places()[at].3.prop_map(String::from))),
        after in prop::collection::vec(ordinary(), 0..4),
    ) {
        let (before, prefix, suffix, _) = places()[place];
        let mut words: Vec<OsString> = before.iter().map(Into::into).collect();
        words.push(format!("{prefix}{secret}{suffix}").into());
        words.extend(after.iter().map(Into::into));
        let shown = masked(&words);
        prop_assert!(!shown.join("\0").contains(&secret), "{words:?} is shown as {shown:?}");
        prop_assert_eq!(shown.len(), words.len());
        // A secret that looks like an option may hide the word after it, but no more.
        let kept = &shown[shown.len() - after.len().saturating_sub(1).min(after.len())..];
        prop_assert_eq!(kept, &after[after.len() - kept.len()..]);
    }

    #[test]
    fn f08_ordinary_arguments_are_shown_as_they_are(words in prop::collection::vec(ordinary(), 0..8)) {
        let command: Vec<OsString> = words.iter().map(Into::into).collect();
        prop_assert_eq!(masked(&command), words);
    }

    #[test]
    fn f08_any_text_can_be_masked_and_stays_as_many_words(words in prop::collection::vec("[ -~é\\PC]{0,30}", 0..6)) {
        let command: Vec<OsString> = words.iter().map(Into::into).collect();
        prop_assert_eq!(masked(&command).len(), words.len());
        // It is enough that it returns.
        let _ = masked_text(&words.join(" "));
    }
}

/// Words that say nothing secret.
fn ordinary() -> impl Strategy<Value = String> {
    prop_oneof![
        "--(port|host|verbose|path|pattern|config|signal|author|bypass|dir)",
        // None that takes a password after a program that logs in.
        "-[d-oq-tvx-z]",
        "[0-9]{1,5}",
        "(/(srv|opt|home|index\\.js|data)){1,4}",
        "@(scope|org)/[b-df-hj-m]{3,8}@[0-9]\\.[0-9]\\.[0-9]",
        "https?://h\\.example(:[0-9]{2,4})?/(a|b|v[0-9])?(\\?page=[0-9])?",
        "NODE_ENV=[b-df-hj-m]{3,8}",
    ]
}
