use minijinja::value::Serde;
use minijinja::{Environment, Error, UndefinedBehavior};
use serde_json::{Map, Value};

/// The maximum number of steps of a template; hand-written ones take a few hundred.
const FUEL: u64 = 50_000;

/// A Jinja template of a prompt. Values of inputs are inserted verbatim and never parsed as a template.
///
/// ```
/// use formwork_skill::Template;
/// use serde_json::json;
///
/// let template = Template::new("{{ title }}: {{ text }}")?;
/// assert_eq!(template.variables(), ["text", "title"]);
/// let row = json!({"title": "{{ text }}", "text": "Maria is 34."});
/// assert_eq!(template.render(row.as_object().unwrap(), 1000)?, "{{ text }}: Maria is 34.");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone)]
pub struct Template {
    environment: Environment<'static>,
    variables: Vec<String>,
}

const NAME: &str = "template";

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// The message of a syntax error, with its line.
    pub fn new(source: &str) -> Result<Self, String> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(50);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.add_template_owned(NAME, source.to_owned()).map_err(|error| words(&error))?;
        let template = environment.get_template(NAME).map_err(|error| words(&error))?;
        let mut variables: Vec<String> = template.undeclared_variables(false).into_iter().collect();
        variables.retain(|name| !environment.globals().any(|(global, _)| global == name.as_str()));
        variables.sort();
        Ok(Self { environment, variables })
    }

    /// Returns the names that the template uses and does not define, sorted.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Returns the text of the template for these inputs.
    ///
    /// # Errors
    /// The message of an undefined name, of a template that runs too long, and of a text of more than `max` bytes.
    pub fn render(&self, inputs: &Map<String, Value>, max: usize) -> Result<String, String> {
        let template = self.environment.get_template(NAME).map_err(|error| words(&error))?;
        let text = template.render(Serde(inputs)).map_err(|error| words(&error))?;
        if text.len() > max {
            return Err(format!("it comes to {} bytes: at most {max} are sent", text.len()));
        }
        Ok(text)
    }
}

/// Returns the message of an error, and its line in the template.
fn words(error: &Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    let line = error.line().map(|line| format!(" in its line {line}")).unwrap_or_default();
    format!("{}{detail}{line}", error.kind())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MOST: usize = 400_000;

    fn render(source: &str, inputs: Value) -> Result<String, String> {
        Template::new(source)?.render(inputs.as_object().unwrap(), MOST)
    }

    #[test]
    fn inputs_are_filled_in_as_data() {
        assert_eq!(
            render("{{ a }} & {{ b[0] }}", json!({"a": "<x> {{ b }}", "b": [1]})).unwrap(),
            "<x> {{ b }} & 1"
        );
        assert_eq!(render("{% if a %}x{% else %}y{% endif %}", json!({"a": null})).unwrap(), "y");
        assert_eq!(render("{{ a | tojson }}", json!({"a": {"k": [1]}})).unwrap(), r#"{"k": [1]}"#);
    }

    #[test]
    fn what_is_not_defined_is_an_error() {
        assert!(render("x\n{{ a.b }}", json!({"a": {}})).unwrap_err().contains("in its line 2"));
        assert!(render("{{ a }}", json!({})).unwrap_err().contains("undefined"));
        assert_eq!(
            Template::new("{{ b }}{% for x in range(3) %}{{ x }}{{ a.c }}{% endfor %}").unwrap().variables(),
            ["a", "b"]
        );
    }

    #[test]
    fn what_does_not_end_is_stopped() {
        let loops = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        assert!(render(loops, json!({})).unwrap_err().contains("fuel"));
        assert!(render("{{ a * 900 }}", json!({"a": "x".repeat(1000)})).is_err());
        assert!(render("{{ a }}", json!({"a": "x".repeat(MOST + 1)})).unwrap_err().contains("at most"));
        assert!(Template::new("{{ a").is_err());
        assert!(render("{% include 'other' %}", json!({})).is_err());
    }
}
