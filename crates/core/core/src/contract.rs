use std::any::{Any, TypeId};
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::about::Accepted;
use crate::absence::declared::declares_absence;
use crate::coercion::places::Coercions;
use crate::decode::{decode, undecodable};
use crate::reader::Places;
use crate::rule::{RULES, SourceIndex};
use crate::{
    Calibrations, Coercion, Context, Dependency, Error, ErrorKind, JsonPath, Judgement, Outline, PathPattern,
    Report, Rule, Rules, Schema, Severity, Stage, Structure, Validator, Violation, Warning, root,
};

/// The conditions on an answer: a JSON Schema, then a Rust type, then checks.
///
/// The compiled schema is passed in (`formwork_schema::compile`), because the core has no JSON Schema validator. Each stage
/// reports all its violations; a check runs only if the values that it reads have no violation yet.
///
/// ```
/// use formwork_core::{Context, Contract, Inline, Report, Rule, Stage, Structure, Validator, Violation};
/// use serde_json::{Value, json};
/// use std::sync::Arc;
///
/// /// Stands in for the validator that formwork-schema compiles.
/// struct AnyObject;
/// impl Validator for AnyObject {
///     fn validate(&self, value: &Value, _: &Context<'_>, out: &mut Report) {
///         if !value.is_object() {
///             out.push(Violation::new(Default::default(), "type", Stage::Schema).with_expected("object"));
///         }
///     }
/// }
/// impl Structure for AnyObject {
///     fn subschema(&self, _: &formwork_core::JsonPath, _: &Value) -> Option<Value> {
///         None
///     }
/// }
///
/// #[derive(serde::Deserialize)]
/// struct Range { low: u8, high: u8 }
///
/// let contract = Contract::new(Arc::new(Inline::new("range", json!({"type": "object"}))), Arc::new(AnyObject))
///     .with_type::<Range>()
///     .with_typed_check("$.low".parse()?, "order", |range: &Range| {
///         if range.low <= range.high { Ok(()) } else { Err("low is at most high".to_string()) }
///     })
///     .with_rule(Rule::AtMost { target: "$.high".parse()?, limit: "$.max".parse()? });
/// let judgement = contract.judge(&json!({"low": 7, "high": 3, "max": 2}), &Context::EMPTY);
/// let found: Vec<_> = judgement.violations.iter().map(|violation| violation.rule.as_str()).collect();
/// assert_eq!(found, ["order", "atMost"]);
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Contract {
    schema: Arc<dyn Schema>,
    structure: Arc<dyn Structure>,
    decode: Option<(TypeName, Decode)>,
    checks: Vec<Check>,
    warnings: Vec<Warning>,
    calibrations: Option<Arc<Calibrations>>,
    /// Whether the schema marks members that a text may lack.
    declares_absence: bool,
    coercion: Option<Coercion>,
    coercions: Arc<OnceLock<Arc<Coercions>>>,
    outline: Arc<OnceLock<Arc<Outline>>>,
    /// The schema with the rules by which values are computed; `None` without any.
    with_rules: Arc<OnceLock<Option<Arc<Value>>>>,
}

/// A function that decodes a value into the contract's type.
type Decode = Arc<dyn Fn(&Value) -> Result<Box<dyn Any + Send>, Box<Violation>> + Send + Sync>;

/// A Rust type and its name.
#[derive(Clone, Copy)]
struct TypeName(TypeId, &'static str);

impl TypeName {
    fn of<T: 'static>() -> Self {
        Self(TypeId::of::<T>(), std::any::type_name::<T>())
    }
}

/// A check of the decoded value, which returns a description of the expected value on failure.
type TypedCheck = Arc<dyn Fn(&dyn Any) -> Result<(), String> + Send + Sync>;

#[derive(Clone)]
enum Kind {
    Rule(Rule),
    Custom(Arc<dyn Validator>),
    Typed { path: JsonPath, name: String, of: TypeName, check: TypedCheck },
}

#[derive(Clone)]
struct Check {
    kind: Kind,
    severity: Severity,
}

impl Contract {
    /// Creates a contract from a schema and its compiled form, without a type and checks.
    pub fn new(schema: Arc<dyn Schema>, structure: Arc<dyn Structure>) -> Self {
        let declares_absence = declares_absence(schema.document());
        Self {
            schema,
            structure,
            decode: None,
            checks: Vec::new(),
            warnings: Vec::new(),
            calibrations: None,
            declares_absence,
            coercion: None,
            coercions: Arc::default(),
            outline: Arc::default(),
            with_rules: Arc::default(),
        }
    }

    /// Requires that the answer deserialises as `T` (default: no type). Integral numbers (`612.0`) deserialise as integers.
    pub fn with_type<T: DeserializeOwned + Send + 'static>(mut self) -> Self {
        let decode: Decode = Arc::new(|value| {
            let decoded: T = decode(value).map_err(|_| Box::new(undecodable::<T>(value)))?;
            Ok(Box::new(decoded))
        });
        self.decode = Some((TypeName::of::<T>(), decode));
        self
    }

    /// Adds a rule that the answer has to satisfy (default: none).
    pub fn with_rule(self, rule: Rule) -> Self {
        self.with(Kind::Rule(rule), Severity::Error)
    }

    /// Adds a rule whose violations are warnings (default: none).
    pub fn with_soft_rule(self, rule: Rule) -> Self {
        self.with(Kind::Rule(rule), Severity::Warning)
    }

    /// Adds a validator that the answer has to pass: a type of your own, or a closure `|value, cx, out|` (default: none).
    pub fn with_check(self, check: impl Validator + 'static) -> Self {
        self.with(Kind::Custom(Arc::new(check)), Severity::Error)
    }

    /// Adds a validator whose violations are warnings (default: none).
    pub fn with_soft_check(self, check: impl Validator + 'static) -> Self {
        self.with(Kind::Custom(Arc::new(check)), Severity::Warning)
    }

    /// Adds a check of the decoded value (default: none). `path` is the path of its violation, and an `Err` describes the
    /// expected value.
    ///
    /// `T` has to be the type of [`with_type`](Self::with_type). [`check_paths`](Self::check_paths), which every extractor
    /// calls when it is built, rejects other types.
    pub fn with_typed_check<T: 'static>(
        self,
        path: JsonPath,
        name: impl Into<String>,
        check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.with(Kind::typed(path, name.into(), check), Severity::Error)
    }

    /// Adds a check like [`with_typed_check`](Self::with_typed_check), whose violations are warnings (default: none).
    pub fn with_soft_typed_check<T: 'static>(
        self,
        path: JsonPath,
        name: impl Into<String>,
        check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.with(Kind::typed(path, name.into(), check), Severity::Warning)
    }

    /// Adds a warning about the contract itself (default: none). Every [`Outcome`](crate::Outcome) has it.
    pub fn with_warning(mut self, warning: Warning) -> Self {
        self.warnings.push(warning);
        self
    }

    crate::setters! {
        /// Sets the calibrations by which the [confidence](crate::Outcome::confidence) in the values of each outcome is a probability (default:
        /// none, it is a score). They do not count for the digest of the contract.
        pub fn with_calibrations(Some(calibrations): impl Into<Arc<Calibrations>>);
    }

    /// Sets what is done with values that do not fit the schema, where `x-formwork-coerce` in the schema sets nothing else (default:
    /// [`Policy::coercion`](crate::Policy::coercion) in a run, [`Coercion::Ask`] elsewhere).
    pub fn with_coercion(mut self, coercion: Coercion) -> Self {
        (self.coercion, self.coercions, self.outline) = (Some(coercion), Arc::default(), Arc::default());
        self
    }

    /// Sets what is done with values that do not fit the schema, unless the contract sets it itself.
    pub(crate) fn or_coercion(self, coercion: Coercion) -> Self {
        if self.coercion.is_some() { self } else { self.with_coercion(coercion) }
    }

    /// Returns whether the contract permits doubtful conversions of the whole document: then a reader of a text may take the text itself
    /// for the document.
    pub fn guesses(&self) -> bool {
        self.coercions().base() == Coercion::Guess
    }

    /// Returns what is done at each place, found out at the first call.
    pub(crate) fn coercions(&self) -> Arc<Coercions> {
        let compile = || Coercions::new(self.schema.document(), self.coercion.unwrap_or_default());
        Arc::clone(self.coercions.get_or_init(|| Arc::new(compile())))
    }

    /// Returns the warnings about the contract itself.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn with(mut self, kind: Kind, severity: Severity) -> Self {
        self.checks.push(Check { kind, severity });
        self.with_rules = Arc::default();
        self
    }

    /// Returns the schema.
    pub fn schema(&self) -> &dyn Schema {
        self.schema.as_ref()
    }

    /// Returns the schema and the calibrations for the evidence of an accepted value and the confidence in it.
    pub(crate) fn accepted(&self) -> Accepted {
        let with_rules = self.with_rules.get_or_init(|| {
            let rules = self.checks.iter().filter_map(|check| match &check.kind {
                Kind::Rule(rule @ Rule::WeightedSum { .. }) => serde_json::to_value(rule).ok(),
                _ => None,
            });
            let rules: Vec<_> = rules.collect();
            let mut document = Some(self.schema.document().clone()).filter(|_| !rules.is_empty())?;
            document.as_object_mut()?.insert(RULES.to_owned(), rules.into());
            Some(Arc::new(document))
        });
        Accepted::new(Arc::clone(&self.schema), with_rules.clone(), self.calibrations.clone())
    }

    /// Returns the compiled schema.
    pub fn structure(&self) -> &dyn Structure {
        self.structure.as_ref()
    }

    /// Returns whether the schema marks members that a text may lack; see [`Absent`](crate::Absent).
    pub(crate) const fn declares_absence(&self) -> bool {
        self.declares_absence
    }

    /// Returns the schema in the form that a [`Reader`](crate::Reader) walks, compiled at the first call.
    pub fn outline(&self) -> Arc<Outline> {
        let compile = || {
            let outline = Outline::new(self.schema.document(), Some(Arc::clone(&self.structure)));
            outline.with_coercions(&self.coercions())
        };
        Arc::clone(self.outline.get_or_init(|| Arc::new(compile())))
    }

    /// Returns the outline of answers with documents at these places; `None` if nothing in them can be judged before they are lifted.
    pub(crate) fn outline_at(&self, places: &Places) -> Option<Arc<Outline>> {
        let undecided = places.undecided()?;
        if places.below.is_none() && undecided.is_empty() {
            return Some(self.outline());
        }
        let (schema, structure) = (self.schema.document(), Some(Arc::clone(&self.structure)));
        let outline = match &places.below {
            Some(name) => Outline::wrapped(schema, structure, name),
            None => Outline::new(schema, structure),
        };
        Some(Arc::new(outline.with_coercions(&self.coercions()).without(undecided)))
    }

    /// Returns the rules that reject answers.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        let hard = self.checks.iter().filter(|check| check.severity == Severity::Error);
        hard.filter_map(|check| if let Kind::Rule(rule) = &check.kind { Some(rule) } else { None })
    }

    /// Returns the order of generation that the rules need to narrow values.
    pub fn dependencies(&self) -> Vec<Dependency> {
        self.rules().filter_map(Rule::dependency).collect()
    }

    /// Finds the rules that are named in files; see [`Custom::resolve`](crate::Custom::resolve).
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the most similar name, if there is no rule of a name.
    pub fn resolve(&mut self, known: &Rules) -> Result<(), Error> {
        for check in &mut self.checks {
            if let Kind::Rule(Rule::Custom(rule)) = &mut check.kind {
                rule.resolve(known).map_err(|message| Error::new(ErrorKind::Config, message))?;
            }
        }
        Ok(())
    }

    /// Checks the paths of all rules and checks, and the types of typed checks.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a path at which the schema allows no value, or for a check of another type than the
    /// contract's: such a rule or check would never run. The message names the nearest existing path.
    pub fn check_paths(&self) -> Result<(), Error> {
        for check in &self.checks {
            self.check_type(&check.kind)?;
            let (name, paths) = match &check.kind {
                Kind::Rule(rule) => (rule.name(), rule.paths().into_iter().cloned().collect()),
                Kind::Typed { path, name, .. } => (name.as_str(), vec![path.clone().into()]),
                Kind::Custom(check) => ("check", check.reads().into_iter().map(PathPattern::from).collect()),
            };
            let missing = |path: &PathPattern| self.structure.missing(path);
            if let Some(why) = paths.iter().find_map(missing) {
                let what = if matches!(check.kind, Kind::Rule(_)) { "rule" } else { "check" };
                return Err(Error::new(
                    ErrorKind::Config,
                    format!("the {what} `{name}` can never run: {why}"),
                ));
            }
        }
        Ok(())
    }

    fn check_type(&self, kind: &Kind) -> Result<(), Error> {
        let Kind::Typed { name, of: TypeName(expected, checked), .. } = kind else { return Ok(()) };
        let found = self.decode.as_ref().map(|(of, _)| of);
        if found.is_some_and(|TypeName(found, _)| found == expected) {
            return Ok(());
        }
        let found = match found {
            Some(TypeName(_, found)) => format!("of `{found}`"),
            None => "without a type".to_owned(),
        };
        let message =
            format!("the check `{name}` can never run: it is of `{checked}`, the contract is {found}");
        Err(Error::new(ErrorKind::Config, message))
    }

    /// Returns a digest of the schema and the rules, for stored runs and caches. Closures are not part of it: contracts
    /// that differ only in closures have the same digest.
    pub fn digest(&self) -> String {
        let rules: Vec<&Rule> = self.rules().collect();
        let parts = serde_json::json!([self.schema.name(), self.schema.document(), rules]);
        let hash = Sha256::digest(parts.to_string());
        hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns whether the schema describes values of this JSON type, whatever the value contains. A schema without `type`
    /// whose keywords all concern objects describes objects, and likewise for arrays.
    pub fn allows_type_of(&self, value: &Value) -> bool {
        root::allows_type_of(self.schema.document(), value)
    }

    /// Examines a value and returns all its violations, up to [`Report::CAP`].
    pub fn judge(&self, value: &Value, cx: &Context<'_>) -> Judgement {
        self.judge_with(value, cx, &SourceIndex::default())
    }

    /// Examines a value like [`judge`](Self::judge), with an index of the text of `cx` that several values share.
    pub(crate) fn judge_with(&self, value: &Value, cx: &Context<'_>, source: &SourceIndex) -> Judgement {
        self.judge_into(Report::default(), value, cx, source)
    }

    /// Examines a value and returns all its violations, without a limit.
    pub fn judge_all(&self, value: &Value, cx: &Context<'_>) -> Judgement {
        self.judge_into(Report::uncapped(), value, cx, &SourceIndex::default())
    }

    fn judge_into(
        &self,
        mut report: Report,
        value: &Value,
        cx: &Context<'_>,
        source: &SourceIndex,
    ) -> Judgement {
        self.structure.validate(value, cx, &mut report);
        let decoded = match &self.decode {
            Some((_, decode)) if report.is_empty() => match decode(value) {
                Ok(decoded) => Some(decoded),
                Err(violation) => {
                    report.push(*violation);
                    None
                }
            },
            _ => None,
        };
        let schema_at = |path: &JsonPath| self.structure.subschema(path, value);
        for check in &self.checks {
            report.set_soft(check.severity == Severity::Warning);
            if let Kind::Rule(rule) = &check.kind {
                rule.validate_with(value, cx, &mut report, &schema_at, true, source);
            } else {
                check.kind.run(value, decoded.as_deref(), cx, &mut report);
            }
        }
        let left_out = report.left_out();
        let is_error = |violation: &Violation| violation.severity == Severity::Error;
        let found = report.into_violations();
        let (violations, warnings) = if found.iter().all(is_error) {
            (found, Vec::new())
        } else {
            found.into_iter().partition(is_error)
        };
        Judgement { violations, warnings, left_out, decoded }
    }
}

impl Kind {
    fn typed<T: 'static>(
        path: JsonPath,
        name: String,
        check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let check: TypedCheck = Arc::new(move |decoded| decoded.downcast_ref::<T>().map_or(Ok(()), &check));
        Self::Typed { path, name, of: TypeName::of::<T>(), check }
    }

    fn run(&self, value: &Value, decoded: Option<&(dyn Any + Send)>, cx: &Context<'_>, report: &mut Report) {
        match self {
            Self::Custom(check) if !report.touches(&check.reads()) => check.validate(value, cx, report),
            Self::Typed { path, name, check, .. } => {
                let Some(decoded) = decoded else { return };
                if let Err(expected) = check(decoded) {
                    report.push(Violation::new(path.clone(), name, Stage::Check).with_expected(expected));
                }
            }
            Self::Custom(_) | Self::Rule(_) => {}
        }
    }
}

crate::debug_fields!(Contract { schema.name(), checks.len() });
