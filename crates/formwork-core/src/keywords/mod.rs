//! JSON Schema's keywords as data, and the one walk over the schemas that a schema contains.
//!
//! [`ALL`] is the only list of keywords in these crates. Code that gives a keyword its meaning matches on the name; code that
//! needs to know only where schemas are, or what kind of keyword it has before it, asks the table: [`keyword`], [`parts`],
//! [`map_parts`], [`find`]. [`target`] follows a local `$ref`, [`fits_type`] is what `type` means.
//!
//! ```
//! use formwork_core::keywords::{parts, target};
//!
//! let schema = serde_json::json!({"properties": {"a/b": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "null"}}});
//! let pointers: Vec<_> = parts(&schema).map(|part| part.pointer("")).collect();
//! assert_eq!(pointers, ["/properties/a~1b", "/$defs/x"]);
//! assert_eq!(target(&schema, &schema["properties"]["a/b"]), Some(&schema["$defs"]["x"]));
//! ```

mod types;
mod walk;

pub use types::{fits_type, is_type, type_name};
pub(crate) use walk::percent_decoded;
pub use walk::{Part, Step, definition_name, find, item, map_parts, member_names, parts, parts_mut, target};

/// A keyword of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyword {
    /// The name.
    pub name: &'static str,
    /// Its task in a schema.
    pub role: Role,
    /// The form of its value.
    pub holds: Holds,
    /// The values that the schemas in it are about.
    pub at: At,
    /// The type that a schema without `type` is taken to be meant for because it has this keyword.
    pub about: Option<&'static str>,
    /// Whether draft 2019-09 replaced it.
    pub is_old: bool,
}

/// The task of a keyword in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Names the schema or its dialect, or comments on it.
    Identity,
    /// Refers to another schema.
    Reference,
    /// Keeps schemas that others refer to.
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
    /// Schemas by name; `dependencies` has lists of names among them.
    Map,
    /// JSON that is no schema, whatever it looks like.
    Values,
    /// Text, numbers or names.
    Plain,
}

/// The values that a subschema is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The value that the schema itself is about.
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
    /// Whether it can make a value invalid by itself in draft 2020-12. References are not counted.
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

/// Every keyword of the drafts in use, and those of OpenAPI that schemas often carry, sorted by name.
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

/// Returns the keyword of this name; `None` for a name that no draft and no OpenAPI version gives a meaning.
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
