//! Pure: what a replacement means: which servers are kept, which are started and which are ended.

use std::collections::BTreeSet;

use crate::spec::ServerSpec;

/// Two servers of one name cannot be told apart.
///
/// ```
/// use moored_client::DuplicateName;
///
/// let twice = DuplicateName { name: "files".to_owned() };
/// assert_eq!(twice.to_string(), "two servers are called `files`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two servers are called `{name}`")]
pub struct DuplicateName {
    /// That name.
    pub name: String,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Same spec, and alive: the process stays.
    pub(crate) kept: Vec<String>,
    /// New or changed, or the same but ended by itself.
    pub(crate) to_start: Vec<ServerSpec>,
    /// Changed, or no longer wanted.
    pub(crate) to_end: Vec<String>,
}

/// A server of the generation that serves.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) spec: ServerSpec,
    pub(crate) alive: bool,
}

impl Plan {
    /// From what serves to what is wanted.
    pub(crate) fn between(serving: &[Serving], wanted: Vec<ServerSpec>) -> Result<Self, DuplicateName> {
        let mut names = BTreeSet::new();
        if let Some(twice) = wanted.iter().find(|spec| !names.insert(spec.name().to_owned())) {
            return Err(DuplicateName { name: twice.name().to_owned() });
        }
        let mut plan = Self::default();
        for spec in wanted {
            if serving.iter().any(|old| old.alive && old.spec == spec) {
                plan.kept.push(spec.name().to_owned());
            } else {
                plan.to_start.push(spec);
            }
        }
        let is_kept = |old: &&Serving| plan.kept.iter().any(|name| name == old.spec.name());
        plan.to_end =
            serving.iter().filter(|old| !is_kept(old)).map(|old| old.spec.name().to_owned()).collect();
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(name: u8, version: u8) -> ServerSpec {
        ServerSpec::new(format!("s{name}"), "server").arg(version.to_string())
    }

    fn generation() -> impl Strategy<Value = Vec<ServerSpec>> {
        proptest::collection::btree_map(0_u8..6, 0_u8..3, 0..6)
            .prop_map(|servers| servers.into_iter().map(|(name, version)| spec(name, version)).collect())
    }

    fn serving(specs: &[ServerSpec]) -> Vec<Serving> {
        specs.iter().map(|spec| Serving { spec: spec.clone(), alive: true }).collect()
    }

    proptest! {
        #[test]
        fn every_server_has_one_fate(old in generation(), new in generation()) {
            let plan = Plan::between(&serving(&old), new.clone()).expect("names differ");
            prop_assert_eq!(plan.kept.len() + plan.to_start.len(), new.len());
            prop_assert_eq!(plan.kept.len() + plan.to_end.len(), old.len());
            for spec in &new {
                let is_kept = plan.kept.iter().any(|name| name == spec.name());
                prop_assert_eq!(is_kept, old.contains(spec));
                prop_assert_eq!(!is_kept, plan.to_start.contains(spec));
            }
        }

        #[test]
        fn the_same_again_changes_nothing(old in generation()) {
            let plan = Plan::between(&serving(&old), old.clone()).expect("names differ");
            prop_assert!(plan.to_start.is_empty() && plan.to_end.is_empty());
        }
    }

    #[test]
    fn a_server_that_ended_is_started_though_its_spec_is_the_same() {
        let dead = [Serving { spec: spec(1, 1), alive: false }];
        let plan = Plan::between(&dead, vec![spec(1, 1)]).expect("one name");
        assert_eq!((plan.to_start.len(), plan.to_end.len()), (1, 1));
    }

    #[test]
    fn a_name_cannot_be_given_twice() {
        let refused = Plan::between(&[], vec![spec(1, 1), spec(1, 2)]).expect_err("twice");
        assert_eq!(refused.to_string(), "two servers are called `s1`");
    }
}
