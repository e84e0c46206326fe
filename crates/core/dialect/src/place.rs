//! Locations in a schema, for reports: cheap to extend during a walk, and written as pointers on demand only.

use std::collections::BTreeMap;

use formwork_core::escape;

/// The index of a location; the default is the root.
///
/// All indices are equal, so that forms are equal independent of their locations.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlaceId(u32);

impl PartialEq for PlaceId {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A step from a schema to a schema inside it.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A single schema: `items`, `not`.
    Keyword(&'static str),
    /// The name in `properties` or another map of schemas, as an index into the names.
    Named(&'static str, u32),
    /// The index in `allOf` or another list of schemas.
    Listed(&'static str, u32),
    /// The schema `items` beside `prefixItems`.
    Rest,
    /// A definition, as an index into the names.
    Definition(u32),
}

/// All visited locations of one schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    steps: Vec<(PlaceId, Step)>,
    names: Vec<String>,
    /// The pointers of the definitions in the original schema.
    origins: BTreeMap<String, String>,
    /// Whether the original schema uses draft 7 or an older one, with other names of some keywords.
    is_old: bool,
}

impl Places {
    /// Creates the list for a normalised schema whose definitions come from these pointers.
    pub(crate) fn new(origins: BTreeMap<String, String>, is_old: bool) -> Self {
        Self { origins, is_old, ..Self::default() }
    }

    pub(crate) fn keyword(&mut self, at: PlaceId, keyword: &'static str) -> PlaceId {
        self.push(at, Step::Keyword(keyword))
    }

    /// Returns the location of `items` beside `prefixItems`.
    pub(crate) fn rest(&mut self, at: PlaceId) -> PlaceId {
        self.push(at, Step::Rest)
    }

    pub(crate) fn listed(&mut self, at: PlaceId, keyword: &'static str, index: usize) -> PlaceId {
        self.push(at, Step::Listed(keyword, u32::try_from(index).unwrap_or(u32::MAX)))
    }

    pub(crate) fn named(&mut self, at: PlaceId, keyword: &'static str, name: &str) -> PlaceId {
        let name = self.name(name);
        self.push(at, Step::Named(keyword, name))
    }

    pub(crate) fn definition(&mut self, name: &str) -> PlaceId {
        let name = self.name(name);
        self.push(PlaceId(0), Step::Definition(name))
    }

    fn name(&mut self, name: &str) -> u32 {
        self.names.push(name.to_owned());
        u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
    }

    fn push(&mut self, at: PlaceId, step: Step) -> PlaceId {
        self.steps.push((at, step));
        PlaceId(u32::try_from(self.steps.len()).unwrap_or(u32::MAX))
    }

    /// Returns the JSON Pointer of a location in the original schema.
    pub(crate) fn pointer(&self, place: PlaceId) -> String {
        let mut steps = Vec::new();
        let mut at = place;
        while let Some((parent, step)) = self.steps.get((at.0 as usize).wrapping_sub(1)) {
            steps.push(step);
            at = *parent;
        }
        let name = |index: u32| self.names.get(index as usize).map_or("", String::as_str);
        let mut out = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Keyword(keyword) => out.extend(["/", keyword]),
                Step::Rest => out.push_str(if self.is_old { "/additionalItems" } else { "/items" }),
                Step::Named(keyword, index) => {
                    let is_old = self.is_old && *keyword == "dependentSchemas";
                    out.extend(["/", if is_old { "dependencies" } else { keyword }, "/"]);
                    out.push_str(&escape(name(*index)));
                }
                Step::Listed(keyword, index) => {
                    let is_old = self.is_old && *keyword == "prefixItems";
                    out.push_str(&format!("/{}/{index}", if is_old { "items" } else { keyword }));
                }
                Step::Definition(index) => {
                    let name = name(*index);
                    match self.origins.get(name) {
                        Some(origin) => out.push_str(origin),
                        None => out.extend(["/$defs/", name]),
                    }
                }
            }
        }
        out
    }
}
