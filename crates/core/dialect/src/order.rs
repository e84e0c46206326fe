use formwork_core::{Dependency, JsonPath, Segment};

/// The order of generation of members below a place of the document.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Order {
    pairs: Vec<(JsonPath, JsonPath)>,
}

impl Order {
    pub(crate) fn new(dependencies: &[Dependency]) -> Self {
        let pairs = dependencies.iter().flat_map(|dependency| {
            dependency.first.iter().map(|first| (first.clone(), dependency.then.clone()))
        });
        Self { pairs: pairs.collect() }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the order below one step.
    pub(crate) fn below(&self, step: &Segment) -> Self {
        let rest = |path: &JsonPath| match path.segments().split_first() {
            Some((first, rest)) if first == step => {
                Some(rest.iter().fold(JsonPath::root(), |path, segment| path.child(segment.clone())))
            }
            _ => None,
        };
        let pairs = self.pairs.iter().filter_map(|(first, then)| Some((rest(first)?, rest(then)?)));
        Self { pairs: pairs.collect() }
    }

    /// Returns the names in an order in which each follows its dependencies, with as few changes as possible; `None` if
    /// they are in such an order. Cycles stay as they are.
    pub(crate) fn sorted<'n>(&self, names: &[&'n str]) -> Option<Vec<&'n str>> {
        if self.pairs.is_empty() {
            return None;
        }
        let key = |path: &JsonPath| match path.segments().first() {
            Some(Segment::Key(name)) => names.iter().position(|known| known == name),
            _ => None,
        };
        let pairs: Vec<_> = self
            .pairs
            .iter()
            .filter_map(|(first, then)| Some((key(first)?, key(then)?)))
            .filter(|(first, then)| first != then)
            .collect();
        let mut left: Vec<usize> = (0..names.len()).collect();
        let mut sorted = Vec::with_capacity(names.len());
        while !left.is_empty() {
            let is_free =
                |index: &usize| !pairs.iter().any(|(first, then)| then == index && left.contains(first));
            let next = left.iter().position(is_free).unwrap_or(0);
            sorted.push(left.remove(next));
        }
        let changed = sorted.iter().enumerate().any(|(place, index)| place != *index);
        changed.then(|| sorted.into_iter().map(|index| names[index]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_comes_after_and_the_rest_stays() {
        let path = |text: &str| text.parse::<JsonPath>().unwrap();
        let dependency =
            Dependency { first: vec![path("$.parts.a"), path("$.parts.b")], then: path("$.score") };
        let order = Order::new(&[dependency]);
        assert_eq!(order.sorted(&["score", "why", "parts"]), Some(vec!["why", "parts", "score"]));
        assert_eq!(order.sorted(&["parts", "score"]), None);
        assert!(order.below(&Segment::Key("parts".into())).is_empty());
    }

    #[test]
    fn a_circle_ends() {
        let path = |text: &str| text.parse::<JsonPath>().unwrap();
        let order = Order { pairs: vec![(path("$.a"), path("$.b")), (path("$.b"), path("$.a"))] };
        assert_eq!(order.sorted(&["a", "b"]), None);
    }
}
