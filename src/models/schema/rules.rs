//! What each protocol accepts of schemas.

/// The rules of one protocol.
#[derive(Debug)]
pub(in crate::models) struct Schemas {
    /// The rules for tools.
    pub(super) tools: Rules,
    /// The rules for a response format that the provider enforces.
    pub(super) format: Rules,
    /// What becomes of a response format that these rules can't express.
    pub(super) otherwise: Otherwise,
}

/// What becomes of a response format that can't be expressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// It is sent in its reduced form.
    Sent,
    /// It is sent without strictness, under the rules for tools.
    NotStrict,
    /// The prompt describes it.
    Prompt,
}

/// What is accepted of one schema. All of them need a root that is a plain object: `type`,
/// `properties`, and no `anyOf`, `oneOf` or `allOf`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// The keywords that are accepted; all if empty.
    pub(super) accepted: &'static [&'static str],
    /// The keywords that are not accepted.
    pub(super) refused: &'static [&'static str],
    /// The keywords of the root that are accepted; all if empty.
    pub(super) at_root: &'static [&'static str],
    /// The accepted values of `format`; all if empty.
    pub(super) formats: &'static [&'static str],
    /// The largest accepted `minItems`.
    pub(super) min_items: u64,
    /// References are replaced by what they refer to.
    pub(super) inlines: bool,
    /// Objects must have `"additionalProperties": false`.
    pub(super) closed: bool,
    /// All members must be required, and all schemas must have a type.
    pub(super) complete: bool,
    /// The most characters of the description of a tool.
    pub(super) description: Option<usize>,
}

const ANY: Rules = Rules {
    accepted: &[],
    refused: &[],
    at_root: &[],
    formats: &[],
    min_items: u64::MAX,
    inlines: false,
    closed: false,
    complete: false,
    description: None,
};

impl Schemas {
    /// OpenAI, for chat completions and responses
    /// (<https://platform.openai.com/docs/guides/structured-outputs>, "Supported schemas").
    pub(in crate::models) const OPENAI: Self = Self {
        tools: Rules {
            description: Some(1_024),
            ..ANY
        },
        format: Rules {
            refused: &[
                "allOf",
                "oneOf",
                "not",
                "if",
                "then",
                "else",
                "dependentRequired",
                "dependentSchemas",
                "dependencies",
                "patternProperties",
                "propertyNames",
                "unevaluatedProperties",
                "unevaluatedItems",
                "minProperties",
                "maxProperties",
                "contains",
                "minContains",
                "maxContains",
                "uniqueItems",
                "minLength",
                "maxLength",
                "default",
                "examples",
            ],
            formats: &[
                "date-time",
                "time",
                "date",
                "duration",
                "email",
                "hostname",
                "ipv4",
                "ipv6",
                "uuid",
            ],
            closed: true,
            complete: true,
            ..ANY
        },
        otherwise: Otherwise::NotStrict,
    };

    /// Anthropic (<https://platform.claude.com/docs/en/build-with-claude/structured-outputs>, "JSON
    /// Schema limitations").
    pub(in crate::models) const ANTHROPIC: Self = Self {
        tools: ANY,
        format: Rules {
            accepted: &[
                "type",
                "title",
                "description",
                "enum",
                "const",
                "default",
                "properties",
                "required",
                "additionalProperties",
                "items",
                "minItems",
                "anyOf",
                "format",
                "pattern",
            ],
            formats: &[
                "date-time",
                "time",
                "date",
                "duration",
                "email",
                "hostname",
                "uri",
                "ipv4",
                "ipv6",
                "uuid",
            ],
            min_items: 1,
            inlines: true,
            closed: true,
            ..ANY
        },
        otherwise: Otherwise::Prompt,
    };

    /// Amazon Bedrock. Of the root of a tool's schema, Nova accepts three keywords
    /// (<https://docs.aws.amazon.com/nova/latest/userguide/tool-use-definition.html>). Response
    /// formats have the rules of Anthropic.
    pub(in crate::models) const BEDROCK: Self = Self {
        tools: Rules {
            at_root: &["type", "properties", "required"],
            inlines: true,
            ..ANY
        },
        ..Self::ANTHROPIC
    };

    /// Gemini (<https://ai.google.dev/api/generate-content>, `responseJsonSchema`). A reference may
    /// have no other keyword beside it, and older models know none.
    pub(in crate::models) const GEMINI: Self = Self {
        tools: OF_GEMINI,
        format: OF_GEMINI,
        otherwise: Otherwise::Sent,
    };
}

const OF_GEMINI: Rules = Rules {
    accepted: &[
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "properties",
        "additionalProperties",
        "required",
        "propertyOrdering",
    ],
    formats: &["date-time", "date", "time"],
    inlines: true,
    ..ANY
};
