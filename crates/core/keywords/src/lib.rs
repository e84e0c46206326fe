//! The keywords of JSON Schema as a table, and the walk over the schemas inside a schema.
//!
//! [`ALL`] is the only list of keywords in these crates. Code that implements the meaning of a keyword matches on its name.
//! Code that needs only the places of subschemas, or the kind of a keyword, uses the table: [`keyword`], [`parts`],
//! [`map_parts`], [`find`]. [`target`] resolves a local `$ref`, and [`fits_type`] evaluates `type`.
//!
//! ```
//! use formwork_keywords::{parts, target};
//!
//! let schema = serde_json::json!({"properties": {"a/b": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "null"}}});
//! let pointers: Vec<_> = parts(&schema).map(|part| part.pointer("")).collect();
//! assert_eq!(pointers, ["/properties/a~1b", "/$defs/x"]);
//! assert_eq!(target(&schema, &schema["properties"]["a/b"]), Some(&schema["$defs"]["x"]));
//! ```

mod types;
mod walk;

pub use types::{fits_type, is_type, type_name};

pub use walk::{
    Part, Step, definition_name, find, item, map_parts, member_names, part_of, parts, parts_mut,
    percent_decoded, target,
};

/// A keyword of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyword {
    /// The name.
    pub name: &'static str,
    /// Its task in a schema.
    pub role: Role,
    /// The form of its value.
    pub holds: Holds,
    /// The values that the subschemas apply to.
    pub at: At,
    /// The type that a schema without `type` is assumed to describe if it has this keyword.
    pub about: Option<&'static str>,
    /// Whether draft 2019-09 replaced it.
    pub is_old: bool,
}

/// The role of a keyword in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Names the schema or its dialect, or comments on it.
    Identity,
    /// Refers to another schema.
    Reference,
    /// Holds schemas that references point to.
    Definitions,
    /// Describes a value, its members or its items by schemas.
    Structure,
    /// Tests a value by schemas that do not describe it.
    Condition,
    /// Tests a value by itself.
    Assertion,
    /// Describes encoded text. Draft 7 tests it, draft 2020-12 does not.
    Content,
    /// Tests nothing.
    Annotation,
    /// Comes from OpenAPI and has no meaning in JSON Schema.
    OpenApi,
}

/// The form of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// One schema; a list of them in `items` of draft 7.
    Schema,
    /// A list of schemas.
    List,
    /// Schemas by name; in `dependencies`, some values are lists of names instead.
    Map,
    /// Arbitrary JSON, which is never a schema.
    Values,
    /// Text, numbers or names.
    Plain,
}

/// The values that a subschema applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The same value as the schema around it.
    Here,
    /// Members or items of the value.
    Inside,
    /// The names of its members.
    Names,
    /// The document that the value encodes.
    Content,
    /// No value, unless a reference leads there.
    Elsewhere,
}

impl Keyword {
    /// Returns whether the keyword can reject a value by itself in draft 2020-12. References do not count.
    ///
    /// ```
    /// use formwork_keywords::{Role, keyword};
    ///
    /// let minimum = keyword("minimum").unwrap();
    /// assert_eq!((minimum.role, minimum.about, minimum.constrains()), (Role::Assertion, Some("number"), true));
    /// assert!(!keyword("title").unwrap().constrains());
    /// ```
    pub fn constrains(&self) -> bool {
        matches!(self.role, Role::Structure | Role::Condition | Role::Assertion) && !self.is_old
    }

    const fn new(name: &'static str, role: Role, holds: Holds, at: At) -> Self {
        Self { name, role, holds, at, about: None, is_old: false }
    }

    const fn plain(name: &'static str, role: Role) -> Self {
        Self::new(name, role, Holds::Plain, At::Elsewhere)
    }

    const fn values(name: &'static str, role: Role) -> Self {
        Self::new(name, role, Holds::Values, At::Elsewhere)
    }

    const fn about(self, about: &'static str) -> Self {
        Self { about: Some(about), ..self }
    }

    const fn old(self) -> Self {
        Self { is_old: true, ..self }
    }
}

/// Every keyword of draft 4 to 2020-12, and the keywords of OpenAPI that schemas often carry, sorted by name.
#[rustfmt::skip]
pub const ALL: &[Keyword] = {
    use At::{Content, Elsewhere, Here, Inside, Names};
    use Holds::{List, Map, Schema};
    use Role::{Annotation, Assertion, Condition, Definitions, Identity, OpenApi, Reference, Structure};
    &[
        Keyword::plain("$anchor", Identity),
        Keyword::plain("$comment", Identity),
        Keyword::new("$defs", Definitions, Map, Elsewhere),
        Keyword::plain("$dynamicAnchor", Identity),
        Keyword::plain("$dynamicRef", Reference),
        Keyword::plain("$id", Identity),
        Keyword::plain("$recursiveAnchor", Identity),
        Keyword::plain("$recursiveRef", Reference),
        Keyword::plain("$ref", Reference),
        Keyword::plain("$schema", Identity),
        Keyword::plain("$vocabulary", Identity),
        Keyword::new("additionalItems", Structure, Schema, Inside).about("array").old(),
        Keyword::new("additionalProperties", Structure, Schema, Inside).about("object"),
        Keyword::new("allOf", Structure, List, Here),
        Keyword::new("anyOf", Structure, List, Here),
        Keyword::values("const", Assertion),
        Keyword::new("contains", Condition, Schema, Inside).about("array"),
        Keyword::plain("contentEncoding", Role::Content),
        Keyword::plain("contentMediaType", Role::Content),
        Keyword::new("contentSchema", Role::Content, Schema, Content),
        Keyword::values("default", Annotation),
        Keyword::new("definitions", Definitions, Map, Elsewhere).old(),
        Keyword::new("dependencies", Condition, Map, Here).old(),
        Keyword::plain("dependentRequired", Assertion),
        Keyword::new("dependentSchemas", Condition, Map, Here),
        Keyword::plain("deprecated", Annotation),
        Keyword::plain("description", Annotation),
        Keyword::plain("discriminator", OpenApi),
        Keyword::new("else", Condition, Schema, Here),
        Keyword::values("enum", Assertion),
        Keyword::values("example", OpenApi),
        Keyword::values("examples", Annotation),
        Keyword::plain("exclusiveMaximum", Assertion).about("number"),
        Keyword::plain("exclusiveMinimum", Assertion).about("number"),
        Keyword::plain("externalDocs", OpenApi),
        Keyword::plain("format", Assertion).about("string"),
        Keyword::plain("id", Identity).old(),
        Keyword::new("if", Condition, Schema, Here),
        Keyword::new("items", Structure, Schema, Inside).about("array"),
        Keyword::plain("maxContains", Assertion),
        Keyword::plain("maxItems", Assertion).about("array"),
        Keyword::plain("maxLength", Assertion).about("string"),
        Keyword::plain("maxProperties", Assertion).about("object"),
        Keyword::plain("maximum", Assertion).about("number"),
        Keyword::plain("minContains", Assertion),
        Keyword::plain("minItems", Assertion).about("array"),
        Keyword::plain("minLength", Assertion).about("string"),
        Keyword::plain("minProperties", Assertion).about("object"),
        Keyword::plain("minimum", Assertion).about("number"),
        Keyword::plain("multipleOf", Assertion).about("number"),
        Keyword::new("not", Condition, Schema, Here),
        Keyword::plain("nullable", OpenApi),
        Keyword::new("oneOf", Structure, List, Here),
        Keyword::plain("pattern", Assertion).about("string"),
        Keyword::new("patternProperties", Structure, Map, Inside).about("object"),
        Keyword::new("prefixItems", Structure, List, Inside).about("array"),
        Keyword::new("properties", Structure, Map, Inside).about("object"),
        Keyword::new("propertyNames", Condition, Schema, Names).about("object"),
        Keyword::plain("propertyOrdering", OpenApi),
        Keyword::plain("readOnly", Annotation),
        Keyword::plain("required", Assertion).about("object"),
        Keyword::new("then", Condition, Schema, Here),
        Keyword::plain("title", Annotation),
        Keyword::plain("type", Assertion),
        Keyword::new("unevaluatedItems", Structure, Schema, Inside).about("array"),
        Keyword::new("unevaluatedProperties", Structure, Schema, Inside).about("object"),
        Keyword::plain("uniqueItems", Assertion).about("array"),
        Keyword::plain("writeOnly", Annotation),
        Keyword::plain("xml", OpenApi),
    ]
};

/// Returns the keyword of this name; `None` if neither a draft nor OpenAPI defines it.
///
/// ```
/// use formwork_keywords::{Holds, keyword};
///
/// assert_eq!(keyword("anyOf").map(|keyword| keyword.holds), Some(Holds::List));
/// assert!(keyword("requird").is_none());
/// ```
pub fn keyword(name: &str) -> Option<&'static Keyword> {
    ALL.binary_search_by(|keyword| keyword.name.cmp(name)).ok().and_then(|index| ALL.get(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_and_says_where_its_schemas_apply() {
        for one in ALL {
            assert_eq!(keyword(one.name), Some(one), "the table is not sorted at {}", one.name);
            let has_schemas = matches!(one.holds, Holds::Schema | Holds::List | Holds::Map);
            let applies = one.at != At::Elsewhere || one.role == Role::Definitions;
            assert_eq!(has_schemas, applies, "{}", one.name);
        }
        assert_eq!(keyword("colour"), None);
    }
}
