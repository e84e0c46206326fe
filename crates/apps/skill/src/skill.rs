use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::sync::Arc;

use formwork_core::{JsonPath, Structure};
use formwork_review::ReviewRubric;
use formwork_review::document::{Document, DocumentError, Finding, Format, nearest};
use formwork_schema::{Compiled, compile};
use formwork_shape::{Shape, ShapeError};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::files::{files, read};
use crate::inputs::{self, Inputs};
use crate::template::Template;
use crate::{SkillDescriptor, SkillError, TemplateType};

/// The maximum size of a rendered prompt in bytes.
const MAX_PROMPT: usize = 400_000;

/// A skill that is ready to run: its template is parsed, its schema compiled, and its files are read.
///
/// Clones share the contents.
///
/// ```
/// use formwork_skill::Skill;
/// use serde_json::json;
///
/// let skill = Skill::parse("greet.yaml", "
/// name: greet
/// description: Greets somebody.
/// inputs: {name: {type: string, default: you}}
/// prompt: Greet {{ name }}.
/// ")?;
/// let inputs = skill.complete(json!({}))?;
/// assert_eq!(skill.render(&inputs)?, (None, "Greet you.".to_owned()));
/// assert_eq!(skill.parse_input("name", "Maria"), Ok(json!("Maria")));
/// # Ok::<(), formwork_skill::SkillError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Skill(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    document: Document,
    version: String,
    parts: Parts,
    warnings: Vec<String>,
}

impl Skill {
    /// Reads a skill from a YAML or TOML file.
    ///
    /// # Errors
    /// [`SkillError::Document`] with all mistakes, or [`SkillError::File`] if the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, SkillError> {
        let text = read(path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::new(&path.display().to_string(), &text, Format::of(path), Some(folder))
    }

    /// Parses a skill from YAML text that refers to no other files; `file` is its name in messages.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load).
    pub fn parse(file: &str, text: &str) -> Result<Self, SkillError> {
        Self::new(file, text, Format::Yaml, None)
    }

    /// Reads all skills of a folder: its `.yaml`, `.yml` and `.toml` files with a `name` and a `description`, in order
    /// of names.
    ///
    /// Files with `criteria` at the top level are rubrics, and are skipped.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load) for the first file with mistakes, and two skills with the same name.
    pub fn load_all(folder: &Path) -> Result<Vec<Self>, SkillError> {
        let (skills, errors) = Self::load_valid(folder)?;
        errors.into_iter().next().map_or(Ok(skills), Err)
    }

    /// Reads the skills of a folder as [`load_all`](Self::load_all) does, and returns the errors of all files with mistakes
    /// beside the other skills.
    ///
    /// # Errors
    /// [`SkillError::File`] if the folder cannot be read.
    ///
    /// ```no_run
    /// let (skills, errors) = formwork_skill::Skill::load_valid("skills".as_ref())?;
    /// errors.iter().for_each(|error| eprintln!("{error:#}"));
    /// # Ok::<(), formwork_skill::SkillError>(())
    /// ```
    pub fn load_valid(folder: &Path) -> Result<(Vec<Self>, Vec<SkillError>), SkillError> {
        let (mut skills, mut errors) = (Vec::<Self>::new(), Vec::new());
        for path in files(folder)? {
            let skill = match Self::load_unless_rubric(&path) {
                Ok(None) => continue,
                Ok(Some(skill)) => skill,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            match skills.iter().find(|other| other.name() == skill.name()) {
                Some(other) => {
                    let message = format!("the skill `{}` is in {} already", skill.name(), other.file());
                    errors.push(skill.at("name", message));
                }
                None => skills.push(skill),
            }
        }
        skills.sort_by(|one, other| one.name().cmp(other.name()));
        Ok((skills, errors))
    }

    fn load_unless_rubric(path: &Path) -> Result<Option<Self>, SkillError> {
        let text = read(path)?;
        let is_rubric = Document::parse(&path.display().to_string(), &text, Format::of(path))
            .is_ok_and(|document| document.value().get("criteria").is_some());
        if is_rubric { Ok(None) } else { Self::load(path).map(Some) }
    }

    fn new(file: &str, text: &str, format: Format, folder: Option<&Path>) -> Result<Self, SkillError> {
        let document = Document::parse(file, text, format)?;
        let descriptor: SkillDescriptor = document.read()?;
        let mut reading = Reading { document: &document, folder, findings: Vec::new(), warnings: Vec::new() };
        reading.note(&document);
        let parts = reading.read(descriptor);
        let Reading { mut findings, warnings, .. } = reading;
        match parts {
            Some(parts) if findings.is_empty() => {
                let version = version(document.value(), &parts);
                Ok(Self(Arc::new(Inner { document, version, parts, warnings })))
            }
            _ => {
                findings.sort_by_key(|finding| (finding.line, finding.column));
                Err(DocumentError::new(findings).into())
            }
        }
    }

    /// Returns the skill's name.
    pub fn name(&self) -> &str {
        &self.0.parts.descriptor.name
    }

    /// Returns the file that the skill was read from.
    pub fn file(&self) -> &str {
        self.0.document.file()
    }

    /// Returns a sentence for each fraction of its files that was rounded to a double, and for each likely mistake in their
    /// schemas, with the place.
    ///
    /// ```
    /// use formwork_skill::Skill;
    ///
    /// let text = "name: dice\ndescription: a number\noutput:\n  schema: {type: number, maximum: 0.12345678901234567891}\n";
    /// let skill = Skill::parse("dice.yaml", text)?;
    /// assert!(skill.warnings()[0].starts_with("dice.yaml: $.output.schema.maximum: the number 0.123456789012345678"));
    /// # Ok::<(), formwork_skill::SkillError>(())
    /// ```
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// Returns the version of the skill: the first 12 digits of the SHA-256 of its file and the files that it names.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// Returns the contents of the file.
    pub fn descriptor(&self) -> &SkillDescriptor {
        &self.0.parts.descriptor
    }

    /// Returns the JSON Schema of the inputs.
    pub fn input_schema(&self) -> Value {
        inputs::schema(&self.0.parts.descriptor.inputs)
    }

    /// Returns the JSON Schema of the output, if it has one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.0.parts.output.as_ref().map(|(schema, _)| schema)
    }

    pub(crate) fn output(&self) -> Option<&Compiled> {
        self.0.parts.output.as_ref().map(|(_, compiled)| compiled.as_ref())
    }

    /// Returns the rubric of the output's review, if there is one.
    pub fn rubric(&self) -> Option<&ReviewRubric> {
        self.0.parts.rubric.as_ref()
    }

    /// Returns the name of the input that is reviewed.
    pub fn subject(&self) -> Option<&str> {
        self.0.parts.subject.as_deref()
    }

    /// Parses an argument of the command line as the value of an input: verbatim for a string, as JSON for other types.
    ///
    /// # Errors
    /// A message in one line, if there is no such input or the text is not valid JSON.
    pub fn parse_input(&self, name: &str, text: &str) -> Result<Value, String> {
        self.0.parts.inputs.parse(name, text)
    }

    /// Validates inputs, and adds their defaults.
    ///
    /// # Errors
    /// [`SkillError::Inputs`] with all problems.
    pub fn complete(&self, supplied: Value) -> Result<Map<String, Value>, SkillError> {
        self.0.parts.inputs.complete(supplied).map_err(|problems| SkillError::Inputs {
            skill: self.name().to_owned(),
            problems: problems.iter().map(|(_, words, _)| words.clone()).collect(),
            violations: problems.into_iter().filter_map(|(_, _, violation)| violation).collect(),
        })
    }

    /// Renders the system prompt and the prompt.
    ///
    /// # Errors
    /// [`SkillError::Template`] if a template cannot be rendered.
    pub fn render(&self, inputs: &Map<String, Value>) -> Result<(Option<String>, String), SkillError> {
        let fill = |which: &'static str, template: &Option<Template>| {
            let text = template.as_ref().map(|template| template.render(inputs, MAX_PROMPT)).transpose();
            text.map_err(|message| SkillError::Template { skill: self.name().to_owned(), which, message })
        };
        Ok((fill("system", &self.0.parts.system)?, fill("prompt", &self.0.parts.prompt)?.unwrap_or_default()))
    }

    /// Returns an error for a key of the skill's file, in one line with the location.
    pub fn at(&self, key: &str, message: impl Into<String>) -> SkillError {
        self.0.document.error(JsonPath::root().key(key), message).into()
    }

    pub(crate) fn place(&self, key: &str) -> String {
        let finding = self.0.document.finding(&JsonPath::root().key(key), "");
        format!("{}:{}:{}", finding.file, finding.line, finding.column)
    }
}

/// The parts of a skill besides its document.
#[derive(Debug)]
struct Parts {
    descriptor: SkillDescriptor,
    inputs: Inputs,
    system: Option<Template>,
    prompt: Option<Template>,
    output: Option<(Value, Arc<Compiled>)>,
    rubric: Option<ReviewRubric>,
    subject: Option<String>,
}

/// Checks the rules that a descriptor's type cannot express, and collects the problems.
struct Reading<'a> {
    document: &'a Document,
    folder: Option<&'a Path>,
    findings: Vec<Finding>,
    warnings: Vec<String>,
}

impl Reading<'_> {
    fn note(&mut self, document: &Document) {
        let file = document.file();
        self.warnings.extend(document.rounded().iter().map(|number| format!("{file}: {number}")));
    }

    fn lint(&mut self, findings: Vec<Finding>) {
        self.warnings.extend(findings.iter().map(ToString::to_string));
    }

    fn wrong(&mut self, path: &JsonPath, message: impl Into<String>) {
        self.findings.push(self.document.finding(path, message));
    }

    /// Returns the value; an error becomes a finding.
    fn kept<T>(&mut self, at: &JsonPath, result: Result<T, impl ToString>) -> Option<T> {
        result.map_err(|error| self.wrong(at, error.to_string())).ok()
    }

    /// Returns what another document holds; its findings count.
    fn beside_kept<T>(&mut self, result: Result<T, DocumentError>) -> Option<T> {
        result.map_err(|error| self.findings.extend_from_slice(error.findings())).ok()
    }

    fn read(&mut self, descriptor: SkillDescriptor) -> Option<Parts> {
        let inputs = self.inputs(&descriptor);
        let system = self.template("system", descriptor.system.as_deref(), &descriptor);
        let prompt = self.template("prompt", descriptor.prompt.as_deref(), &descriptor);
        let output = self.output(&descriptor);
        let subject = self.subject(&descriptor);
        let rubric = self.rubric(&descriptor, output.as_ref(), subject.as_deref());
        self.together(&descriptor);
        Some(Parts { inputs: inputs?, descriptor, system, prompt, output, rubric, subject })
    }

    fn inputs(&mut self, descriptor: &SkillDescriptor) -> Option<Inputs> {
        let root = JsonPath::root().key("inputs");
        for (name, spec) in &descriptor.inputs {
            let at = root.key(name.as_str());
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !name.chars().all(is_plain)
                || name.starts_with(|c: char| c.is_ascii_digit())
                || name.is_empty()
            {
                self.wrong(&at, format!("expected a name of letters, digits and `_`, found `{name}`"));
            }
            if let Some(error) = spec.schema.as_ref().and_then(|schema| compile(schema).err()) {
                self.wrong(&at.key("schema"), error.to_string());
            }
            self.lint(self.document.lint(&at.key("schema")));
        }
        let inputs = match Inputs::new(descriptor.inputs.clone()) {
            Ok(inputs) => inputs,
            Err(error) => {
                if self.findings.is_empty() {
                    self.wrong(&root, format!("the inputs cannot be used: {error}"));
                }
                return None;
            }
        };
        for (name, spec) in &descriptor.inputs {
            let Some(default) = &spec.default else { continue };
            let mut alone = descriptor.inputs.clone();
            alone.retain(|other, _| other == name);
            let supplied = Value::Object([(name.clone(), default.clone())].into_iter().collect());
            let problems = Inputs::new(alone).ok().and_then(|alone| alone.complete(supplied).err());
            for (_, words, _) in problems.into_iter().flatten() {
                self.wrong(&root.key(name.as_str()).key("default"), words);
            }
        }
        for (n, example) in descriptor.examples.iter().enumerate() {
            let at = JsonPath::root().key("examples").index(n);
            for (path, words, _) in
                inputs.complete(Value::Object(example.clone())).err().into_iter().flatten()
            {
                let path = path.segments().iter().cloned().fold(at.clone(), |at, segment| at.child(segment));
                self.wrong(&path, words);
            }
        }
        Some(inputs)
    }

    fn template(
        &mut self,
        key: &str,
        source: Option<&str>,
        descriptor: &SkillDescriptor,
    ) -> Option<Template> {
        let at = JsonPath::root().key(key);
        let template = Template::new(source?);
        let template = template.map_err(|message| format!("the template cannot be read: {message}"));
        let template = self.kept(&at, template)?;
        let known: BTreeSet<&str> = descriptor.inputs.keys().map(String::as_str).collect();
        for name in template.variables().iter().filter(|name| !known.contains(name.as_str())) {
            let advice = match nearest(name, known.iter().copied()) {
                Some(suggestion) => format!("did you mean `{suggestion}`?"),
                None if known.is_empty() => "the skill has no inputs".to_owned(),
                None => format!("the inputs are {}", known.iter().copied().collect::<Vec<_>>().join(", ")),
            };
            self.wrong(&at, format!("the template uses `{name}`, which is no input: {advice}"));
        }
        Some(template)
    }

    fn output(&mut self, descriptor: &SkillDescriptor) -> Option<(Value, Arc<Compiled>)> {
        let output = descriptor.output.as_ref()?;
        let root = JsonPath::root().key("output");
        let supplied = [
            ("schema", output.schema.is_some()),
            ("file", output.file.is_some()),
            ("shape", output.shape.is_some()),
        ];
        let supplied: Vec<&str> =
            supplied.into_iter().filter(|(_, supplied)| *supplied).map(|(key, _)| key).collect();
        if supplied.len() != 1 {
            let found = words(&supplied);
            self.wrong(&root, format!("expected one of `schema`, `file` and `shape`, found {found}"));
            return None;
        }
        self.lint(self.document.lint(&root.key("schema")));
        let (key, schema) = if let Some(schema) = &output.schema {
            ("schema", schema.clone())
        } else if let Some(text) = &output.shape {
            ("shape", self.shape("the shape", &root.key("shape"), text)?)
        } else {
            let name = output.file.as_deref()?;
            ("file", self.schema_file(&root.key("file"), name)?)
        };
        let compiled = self.kept(&root.key(key), compile(&schema))?;
        Some((schema, compiled))
    }

    /// Parses a shape or a list of fields. A text that is neither has the mistake of the form that it follows further.
    fn shape(&mut self, what: &str, at: &JsonPath, text: &str) -> Option<Value> {
        let fields = |error: ShapeError| {
            let further = |other: ShapeError| if other.span.start > error.span.start { other } else { error };
            Shape::parse_fields(text).map_err(further)
        };
        let shape = Shape::parse(text).or_else(fields);
        let shape = shape.map_err(|error| format!("{what} cannot be read: {error}"));
        Some(formwork_core::Schema::document(&self.kept(at, shape)?).clone())
    }

    fn schema_file(&mut self, at: &JsonPath, name: &str) -> Option<Value> {
        let text = self.beside(at, name)?;
        if name.ends_with(".shape") {
            return self.shape(name, at, &text);
        }
        let document = Document::parse(name, &text, Format::of(Path::new(name)));
        let document = self.beside_kept(document)?;
        self.note(&document);
        self.lint(document.lint(&JsonPath::root()));
        Some(document.value().clone())
    }

    /// Returns the rubric. Its paths are checked against the schema of the reviewed value: the output, or the subject.
    fn rubric(
        &mut self,
        descriptor: &SkillDescriptor,
        output: Option<&(Value, Arc<Compiled>)>,
        subject: Option<&str>,
    ) -> Option<ReviewRubric> {
        let subject =
            subject.and_then(|name| inputs::schema(&descriptor.inputs)["properties"].get(name).cloned());
        let subject = subject.and_then(|schema| compile(&schema).ok());
        let reviewed = subject.or_else(|| output.map(|(_, compiled)| compiled.clone()));
        let reviewed = reviewed.as_deref().map(|compiled| compiled as &dyn Structure);
        let (inline, file) = (JsonPath::root().key("rubric"), JsonPath::root().key("rubric_file"));
        if descriptor.rubric.is_some() && descriptor.rubric_file.is_some() {
            self.wrong(&file, "expected `rubric` or `rubric_file`, found both");
            return None;
        }
        if let Some(rubric) = &descriptor.rubric {
            self.beside_kept(rubric.checked(self.document, &inline, reviewed));
            self.lint(rubric.lint(self.document, &inline));
            return Some(rubric.clone());
        }
        let name = descriptor.rubric_file.as_deref()?;
        let text = self.beside(&file, name)?;
        let document = self.beside_kept(Document::parse(name, &text, Format::of(Path::new(name))))?;
        self.note(&document);
        let rubric: ReviewRubric = self.beside_kept(document.read())?;
        self.beside_kept(rubric.checked(&document, &JsonPath::root(), reviewed))?;
        self.lint(rubric.lint(&document, &JsonPath::root()));
        Some(rubric)
    }

    fn subject(&mut self, descriptor: &SkillDescriptor) -> Option<String> {
        let at = JsonPath::root().key("subject");
        let names: Vec<&str> = descriptor.inputs.keys().map(String::as_str).collect();
        match (&descriptor.subject, names.as_slice(), descriptor.template_type) {
            (Some(_), _, kind) if kind != Some(TemplateType::LlmReview) => {
                self.wrong(&at, "`subject` is of LLM_REVIEW alone");
                None
            }
            (Some(name), names, _) if !names.contains(&name.as_str()) => {
                let suggestion = nearest(name, names.iter().copied());
                let advice = suggestion
                    .map_or(format!("the inputs are {}", names.join(", ")), |suggestion| {
                        format!("did you mean `{suggestion}`?")
                    });
                self.wrong(&at, format!("there is no input `{name}`: {advice}"));
                None
            }
            (Some(name), ..) => Some(name.clone()),
            (None, [only], Some(TemplateType::LlmReview)) => Some((*only).to_owned()),
            (None, _, Some(TemplateType::LlmReview)) => {
                let message = "expected `subject`: the input that is reviewed, because there is not just one";
                self.wrong(&JsonPath::root(), message);
                None
            }
            _ => None,
        }
    }

    /// Checks which keys require or exclude each other.
    fn together(&mut self, descriptor: &SkillDescriptor) {
        let root = JsonPath::root();
        let has_rubric = descriptor.rubric.is_some() || descriptor.rubric_file.is_some();
        let kind = descriptor.template_type;
        let at = root.key("template_type");
        match kind {
            Some(TemplateType::LlmJsonGeneration) => {
                for (key, there) in
                    [("prompt", descriptor.prompt.is_some()), ("output", descriptor.output.is_some())]
                {
                    if !there {
                        self.wrong(&at, format!("LLM_JSON_GENERATION needs `{key}`, which is missing"));
                    }
                }
            }
            Some(TemplateType::LlmReview) if !has_rubric => {
                self.wrong(&at, "LLM_REVIEW needs `rubric` or `rubric_file`, which is missing");
            }
            _ => {}
        }
        if kind.is_some() && descriptor.handler.is_some() {
            self.wrong(&root.key("handler"), "a handler is called only where there is no `template_type`");
        }
        if descriptor.retry_once && !(has_rubric && kind == Some(TemplateType::LlmJsonGeneration)) {
            self.wrong(&root.key("retry_once"), "`retry_once` needs LLM_JSON_GENERATION and a rubric");
        }
    }

    /// Reads a file below the descriptor's folder.
    fn beside(&mut self, at: &JsonPath, name: &str) -> Option<String> {
        let Some(folder) = self.folder else {
            self.wrong(at, "there is no folder that this could be in: the skill was not read from a file");
            return None;
        };
        let path = Path::new(name);
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            self.wrong(at, format!("expected a path below the folder of this file, found `{name}`"));
            return None;
        }
        self.kept(at, read(&folder.join(path)))
    }
}

fn version(document: &Value, parts: &Parts) -> String {
    let schema = parts.output.as_ref().map(|(schema, _)| schema);
    let text = json!([document, schema, parts.rubric]).to_string();
    let digest = Sha256::digest(text);
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn words(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}
