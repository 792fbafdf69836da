//! Few combinations that cover much: every pair of levels that can occur together occurs in at least one of them.
//!
//! Most faults need two circumstances to meet, seldom three. Ten factors of three levels have 59,049 combinations, and
//! some 20 of them meet every pair. The lists are deterministic, so that a failing cell has the same number tomorrow.
//!
//! A factor is its number of levels. `allowed` is asked about partial combinations as well, in which `None` means not
//! decided yet; it may answer yes as long as the undecided part could still make it right.

/// One level for each factor.
pub type Combination = Vec<usize>;

/// All allowed combinations.
pub fn every(levels: &[usize], allowed: impl Fn(&[Option<usize>]) -> bool) -> Vec<Combination> {
    let mut found = Vec::new();
    walk(levels, &allowed, &mut vec![None; levels.len()], &mut |combination| {
        found.push(combination);
        Go::On
    });
    found
}

/// Allowed combinations which together cover every pair of levels that any allowed combination has.
pub fn pairs(levels: &[usize], allowed: impl Fn(&[Option<usize>]) -> bool) -> Vec<Combination> {
    let mut uncovered: Vec<Pair> = all_pairs(levels)
        .filter(|pair| completion(levels, &allowed, pair.alone(levels.len())).is_some())
        .collect();
    let mut chosen = Vec::new();
    while let Some(seed) = uncovered.first() {
        let combination = grow(levels, &allowed, seed.alone(levels.len()), &uncovered, &chosen);
        uncovered.retain(|pair| !pair.is_in(&combination));
        chosen.push(combination);
    }
    // With fewer than two factors there are no pairs, and each level is a case.
    if levels.len() < 2 { every(levels, allowed) } else { chosen }
}

type Partial = Vec<Option<usize>>;

/// Two factors at given levels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    one: (usize, usize),
    other: (usize, usize),
}

impl Pair {
    fn alone(self, factors: usize) -> Partial {
        let mut partial = vec![None; factors];
        partial[self.one.0] = Some(self.one.1);
        partial[self.other.0] = Some(self.other.1);
        partial
    }

    fn is_in(self, combination: &[usize]) -> bool {
        combination[self.one.0] == self.one.1 && combination[self.other.0] == self.other.1
    }

    fn is_decided_in(self, partial: &[Option<usize>]) -> bool {
        partial[self.one.0] == Some(self.one.1) && partial[self.other.0] == Some(self.other.1)
    }
}

fn all_pairs(levels: &[usize]) -> impl Iterator<Item = Pair> {
    let singles = |factor: usize| (0..levels[factor]).map(move |level| (factor, level));
    (0..levels.len()).flat_map(move |a| {
        (a + 1..levels.len()).flat_map(move |b| {
            singles(a).flat_map(move |one| singles(b).map(move |other| Pair { one, other }))
        })
    })
}

/// Decides factor after factor for the level that covers most of what is uncovered and can still be completed. Where
/// levels are equal in this, the one chosen least so far comes first: a test per level gets an even share.
fn grow(
    levels: &[usize],
    allowed: &impl Fn(&[Option<usize>]) -> bool,
    mut partial: Partial,
    uncovered: &[Pair],
    chosen: &[Combination],
) -> Combination {
    for factor in 0..levels.len() {
        if partial[factor].is_some() {
            continue;
        }
        let with = |level| {
            let mut next = partial.clone();
            next[factor] = Some(level);
            next
        };
        let gain = |next: &Partial| uncovered.iter().filter(|pair| pair.is_decided_in(next)).count();
        let uses = |next: &Partial| chosen.iter().filter(|other| Some(other[factor]) == next[factor]).count();
        let mut candidates: Vec<Partial> = (0..levels[factor]).map(with).collect();
        // Stable, so that what is equal in both keeps the order of levels.
        candidates.sort_by_cached_key(|next| (std::cmp::Reverse(gain(next)), uses(next)));
        let feasible =
            candidates.into_iter().find(|next| completion(levels, allowed, next.clone()).is_some());
        partial = feasible.expect("the part so far has a completion");
    }
    partial.into_iter().flatten().collect()
}

fn completion(
    levels: &[usize],
    allowed: &impl Fn(&[Option<usize>]) -> bool,
    mut partial: Partial,
) -> Option<Combination> {
    let mut found = None;
    walk(levels, allowed, &mut partial, &mut |combination| {
        found = Some(combination);
        Go::Home
    });
    found
}

/// What to do after a combination was found.
#[derive(PartialEq)]
enum Go {
    On,
    Home,
}

/// Visits the allowed completions of `partial` in order, and leaves `partial` as it was.
fn walk(
    levels: &[usize],
    allowed: &impl Fn(&[Option<usize>]) -> bool,
    partial: &mut Partial,
    visit: &mut impl FnMut(Combination) -> Go,
) -> Go {
    if !allowed(partial) {
        return Go::On;
    }
    let Some(factor) = partial.iter().position(Option::is_none) else {
        return visit(partial.iter().flatten().copied().collect());
    };
    for level in 0..levels[factor] {
        partial[factor] = Some(level);
        let go = walk(levels, allowed, partial, visit);
        partial[factor] = None;
        if go == Go::Home {
            return Go::Home;
        }
    }
    Go::On
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_covers(levels: &[usize], allowed: impl Fn(&[Option<usize>]) -> bool) -> usize {
        let all = every(levels, &allowed);
        let chosen = pairs(levels, &allowed);
        assert!(
            chosen.iter().all(|combination| all.contains(combination)),
            "a forbidden combination was chosen"
        );
        for pair in all_pairs(levels) {
            let possible = all.iter().any(|combination| pair.is_in(combination));
            let covered = chosen.iter().any(|combination| pair.is_in(combination));
            assert_eq!(possible, covered, "{pair:?}");
        }
        assert_eq!(chosen, pairs(levels, &allowed), "not deterministic");
        chosen.len()
    }

    #[test]
    fn all_pairs_are_covered_by_few_combinations() {
        assert!(assert_covers(&[3; 7], |_| true) < 30);
        assert!(assert_covers(&[5, 4, 3, 2, 2, 2], |_| true) < 40);
        assert_eq!(assert_covers(&[4, 5], |_| true), 20);
    }

    #[test]
    fn levels_get_even_shares() {
        let chosen = pairs(&[3, 10, 10], |_| true);
        for level in 0..3 {
            let share = chosen.iter().filter(|combination| combination[0] == level).count();
            assert!((30..=40).contains(&share), "{share} of {}", chosen.len());
        }
    }

    #[test]
    fn a_predicate_on_two_factors_is_obeyed() {
        assert_covers(&[3, 3, 3, 2], |part| !(part[0] == Some(1) && part[2] == Some(2)));
    }

    #[test]
    fn a_predicate_that_waits_for_the_whole_is_obeyed() {
        assert_covers(&[3, 3, 3, 3], |part| {
            let sum: Option<usize> = part.iter().copied().sum();
            sum.is_none_or(|sum| sum % 2 == 0)
        });
    }

    #[test]
    fn a_single_factor_gives_each_level() {
        assert_eq!(pairs(&[3], |part| part[0] != Some(1)), vec![vec![0], vec![2]]);
        assert_eq!(pairs(&[2, 2], |_| false), Vec::<Combination>::new());
    }

    #[test]
    fn every_is_the_product_under_the_predicate() {
        assert_eq!(every(&[2, 3], |_| true).len(), 6);
        assert_eq!(every(&[2, 3], |part| part[1] != Some(0)).len(), 4);
    }
}
