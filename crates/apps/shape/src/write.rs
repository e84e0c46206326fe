//! Writes a shape as text.

use std::fmt::{self, Write};

use serde_json::Value;

use crate::names::name_of;
use crate::{Field, Kind, Node};

/// Writes a shape as `Display` of [`Shape`](crate::Shape): one field per line, each comment after its field.
pub(crate) fn write(root: &Node, out: &mut impl Write) -> fmt::Result {
    if let Some(about) = &root.description {
        writeln!(out, "// {about}")?;
    }
    place(root, 0, None, out)
}

/// Writes a node. `about` is the comment of its field, which follows the first bracket of a node of several lines.
fn place(node: &Node, depth: usize, about: Option<&str>, out: &mut impl Write) -> fmt::Result {
    match &node.kind {
        Kind::OneOf(values) => {
            for (index, value) in values.iter().enumerate() {
                write!(out, "{}{value}", if index > 0 { " | " } else { "" })?;
            }
        }
        Kind::Array(item) => array(item, depth, about, out)?,
        Kind::Object(fields) if fields.is_empty() => out.write_str("{}")?,
        Kind::Object(fields) => {
            out.write_char('{')?;
            note(about, out)?;
            for (index, field) in fields.iter().enumerate() {
                line(depth + 1, out)?;
                member(field, depth + 1, index + 1 == fields.len(), out)?;
            }
            line(depth, out)?;
            out.write_char('}')?;
        }
        scalar => out.write_str(name_of(scalar).unwrap_or("any"))?,
    }
    if node.nullable { out.write_str(" | null") } else { Ok(()) }
}

fn member(field: &Field, depth: usize, is_last: bool, out: &mut impl Write) -> fmt::Result {
    let optional = if field.optional { "?" } else { "" };
    let grounded = if field.grounded { "~" } else { "" };
    write!(out, "{}{optional}{grounded}: ", Value::from(field.name.as_str()))?;
    let about = field.node.description.as_deref();
    let broken = has_lines(&field.node);
    place(&field.node, depth, about, out)?;
    if !is_last {
        out.write_char(',')?;
    }
    note(about.filter(|_| !broken), out)
}

fn array(item: &Node, depth: usize, about: Option<&str>, out: &mut impl Write) -> fmt::Result {
    out.write_char('[')?;
    match &item.description {
        None if !has_lines(item) || matches!(item.kind, Kind::Object(_)) && about.is_none() => {
            place(item, depth, None, out)?;
        }
        own => {
            note(about, out)?;
            line(depth + 1, out)?;
            if let Some(own) = own {
                write!(out, "// {own}")?;
                line(depth + 1, out)?;
            }
            place(item, depth + 1, None, out)?;
            line(depth, out)?;
        }
    }
    out.write_char(']')
}

/// Returns whether a node takes several lines.
fn has_lines(node: &Node) -> bool {
    match &node.kind {
        Kind::Array(item) => item.description.is_some() || has_lines(item),
        Kind::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

fn note(about: Option<&str>, out: &mut impl Write) -> fmt::Result {
    about.map_or(Ok(()), |about| write!(out, " // {about}"))
}

fn line(depth: usize, out: &mut impl Write) -> fmt::Result {
    out.write_char('\n')?;
    (0..depth).try_for_each(|_| out.write_str("  "))
}
