//! Which server is meant: a whole name, else the beginning of an id. Pure.

/// Something that has an id and a name.
pub trait Named {
    /// Its id.
    fn id(&self) -> &str;
    /// Its name.
    fn name(&self) -> &str;
}

impl Named for crate::ServerRow {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for crate::Live {
    fn id(&self) -> &str {
        &self.row.id
    }

    fn name(&self) -> &str {
        &self.row.name
    }
}

/// The words name no server, or could name several.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// There is no such server.
    #[error("no server has the id or name `{target}`")]
    NotFound {
        /// What was looked for.
        target: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The beginning fits several ids.
    #[error("`{target}` is the beginning of several ids: {}", ids.join(", "))]
    Ambiguous {
        /// What was looked for.
        target: String,
        /// All that fit.
        ids: Vec<String>,
    },
}

/// All that are meant: every one of that name, or the one whose id begins so.
///
/// # Errors
/// If no server is meant, or the beginning fits several.
pub fn find<'a, T: Named>(all: &'a [T], target: &str) -> Result<Vec<&'a T>, FindError> {
    let by_name: Vec<&T> = all.iter().filter(|one| one.name() == target).collect();
    if !by_name.is_empty() {
        return Ok(by_name);
    }
    let upper = target.to_ascii_uppercase();
    let by_id: Vec<&T> = all
        .iter()
        .filter(|one| !upper.is_empty() && one.id().to_ascii_uppercase().starts_with(&upper))
        .collect();
    match by_id.len() {
        0 => {
            let mut known: Vec<String> = all.iter().map(|one| one.name().to_owned()).collect();
            known.sort();
            known.dedup();
            Err(FindError::NotFound { target: target.to_owned(), known })
        }
        1 => Ok(by_id),
        _ => {
            let ids = by_id.iter().map(|one| one.id().to_owned()).collect();
            Err(FindError::Ambiguous { target: target.to_owned(), ids })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Named for (&str, &str) {
        fn id(&self) -> &str {
            self.0
        }

        fn name(&self) -> &str {
            self.1
        }
    }

    const ALL: [(&str, &str); 3] = [("01AAB", "time"), ("01AAC", "time"), ("01BBB", "01a")];

    #[test]
    fn a_name_means_all_that_have_it() {
        assert_eq!(find(&ALL, "time"), Ok(vec![&ALL[0], &ALL[1]]));
    }

    #[test]
    fn the_beginning_of_one_id_means_that_one_in_either_case() {
        assert_eq!(find(&ALL, "01aac"), Ok(vec![&ALL[1]]));
        assert_eq!(find(&ALL, "01B"), Ok(vec![&ALL[2]]));
    }

    #[test]
    fn a_name_goes_before_an_id() {
        assert_eq!(find(&ALL, "01a"), Ok(vec![&ALL[2]]));
    }

    #[test]
    fn several_ids_or_none_are_told() {
        let ids = vec!["01AAB".to_owned(), "01AAC".to_owned()];
        assert_eq!(find(&ALL, "01AA"), Err(FindError::Ambiguous { target: "01AA".into(), ids }));
        let known = vec!["01a".to_owned(), "time".to_owned()];
        assert_eq!(find(&ALL, "x"), Err(FindError::NotFound { target: "x".into(), known }));
        assert!(find(&ALL, "").is_err(), "an empty word means no server, not all of them");
    }
}
