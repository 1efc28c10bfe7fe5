//! The guard before the template engine: rejects templates that build values or nest too deep.
//!
//! The engine's parser is recursive, so deep nesting would exhaust its stack. The guard reads the
//! tokens of the engine's own lexer, so both agree on the end of a tag.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::error::PromptError;

/// The statements that a prompt may use.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];
/// The filters that a prompt may use.
const FILTERS: [&str; 5] = ["default", "length", "lower", "trim", "upper"];
/// The tests that a prompt may use.
const TESTS: [&str; 3] = ["defined", "none", "undefined"];
/// The names that callers can set.
const ROOTS: [&str; 2] = ["variables", "metadata"];
/// Names of constants.
const CONSTANTS: [&str; 6] = ["true", "True", "false", "False", "none", "None"];
/// Infix operators.
const OPERATORS: [&str; 6] = ["and", "or", "not", "in", "if", "else"];

/// The most names, texts, numbers and symbols of one tag. For each, the engine may recurse once
/// more.
const MAX_TAG_TOKENS: usize = 100;
/// The most names, texts, numbers and symbols of all tags together.
const MAX_TOKENS: usize = 50_000;
/// The deepest nesting of brackets.
const MAX_BRACKETS: usize = 8;
/// The deepest nesting of `if`, `elif` and `for`.
const MAX_BLOCKS: usize = 50;

/// A template that the engine can compile and execute within bounds.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// The first name that no caller can set.
    pub(super) unknown: Option<PromptError>,
    /// The most bytes of texts in a tag. The engine joins texts that follow each other.
    pub(super) longest_text: usize,
}

/// The kind of the previous token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Operator,
    Operand,
    Dot,
    Pipe,
    Is,
    /// The name of a filter or a test.
    Applied,
}

/// The state of scanning a template.
#[derive(Debug, Default)]
struct Guard<'a> {
    /// The tokens of the open tag, each with its line.
    tag: Vec<(Token<'a>, u16)>,
    brackets: usize,
    texts: usize,
    tokens: usize,
    blocks: Vec<Block<'a>>,
    scanned: Scanned,
}

/// An open block.
#[derive(Debug)]
struct Block<'a> {
    /// The variable of a loop, within its body.
    variable: Option<&'a str>,
    /// An `if` with each of its `elif`s.
    branches: usize,
}

/// Checks a template. The error is the first part that is not allowed.
pub(super) fn scan(template: &str) -> Result<Scanned, PromptError> {
    let mut guard = Guard::default();
    let mut open = None;
    for token in tokenize(template, false, SyntaxConfig::default()) {
        let (token, span) = token?;
        let line = span.start_line;
        match token {
            Token::TemplateData(_) => (),
            Token::VariableStart | Token::BlockStart => {
                (guard.brackets, guard.texts) = (0, 0);
                open = Some(line);
            }
            Token::VariableEnd => {
                let tag = std::mem::take(&mut guard.tag);
                guard.check_expression(&tag)?;
                open = None;
            }
            Token::BlockEnd => {
                let tag = std::mem::take(&mut guard.tag);
                guard.check_statement(&tag, open.take().unwrap_or(line))?;
            }
            token => guard.add(token, line, open.unwrap_or(line))?,
        }
    }
    match open {
        Some(line) => Err(PromptError::at(line, "the tag has no end")),
        None => Ok(guard.scanned),
    }
}

impl<'a> Guard<'a> {
    /// Adds a token to the open tag, which began at a line.
    fn add(&mut self, token: Token<'a>, line: u16, begun: u16) -> Result<(), PromptError> {
        match &token {
            Token::ParenOpen | Token::BracketOpen => self.brackets += 1,
            Token::ParenClose | Token::BracketClose => self.brackets = self.brackets.saturating_sub(1),
            Token::Str(text) => self.texts += text.len(),
            Token::String(text) => self.texts += text.len(),
            _ => (),
        }
        self.tag.push((token, line));
        self.tokens += 1;
        self.scanned.longest_text = self.scanned.longest_text.max(self.texts);
        let words = if self.brackets > MAX_BRACKETS {
            format!("brackets nest deeper than {MAX_BRACKETS} levels")
        } else if self.tag.len() > MAX_TAG_TOKENS {
            format!("the tag has more than {MAX_TAG_TOKENS} names, texts, numbers and symbols")
        } else if self.tokens > MAX_TOKENS {
            format!("the tags have more than {MAX_TOKENS} names, texts, numbers and symbols")
        } else {
            return Ok(());
        };
        Err(PromptError::at(begun, &words))
    }

    fn check_statement(&mut self, tag: &[(Token<'a>, u16)], line: u16) -> Result<(), PromptError> {
        let word = match tag.first() {
            Some((Token::Ident(word), _)) => *word,
            _ => "",
        };
        match (word, tag) {
            ("for", [_, (Token::Ident(variable), _), (Token::Ident("in"), _), expression @ ..]) => {
                self.open_block(Some(*variable), line)?;
                return self.check_expression(expression);
            }
            ("for", _) => return Err(PromptError::at(line, "a loop begins with `for NAME in`")),
            ("if", _) => self.open_block(None, line)?,
            ("elif", _) => {
                if let Some(block) = self.blocks.last_mut() {
                    block.branches += 1;
                }
                self.check_depth(line)?;
            }
            ("else", _) => {
                if let Some(block) = self.blocks.last_mut() {
                    block.variable = None;
                }
            }
            // The engine checks that blocks begin and end in pairs.
            ("endif" | "endfor", _) => {
                self.blocks.pop();
            }
            _ => {
                let shown: String = word.chars().take(20).collect();
                let words = format!("a prompt may use {}, not {shown:?}", STATEMENTS.join(", "));
                return Err(PromptError::at(line, &words));
            }
        }
        self.check_expression(tag.get(1..).unwrap_or_default())
    }

    fn open_block(&mut self, variable: Option<&'a str>, line: u16) -> Result<(), PromptError> {
        self.blocks.push(Block { variable, branches: 1 });
        self.check_depth(line)
    }

    fn check_depth(&self, line: u16) -> Result<(), PromptError> {
        let depth: usize = self.blocks.iter().map(|block| block.branches).sum();
        if depth > MAX_BLOCKS {
            let words = format!("more than {MAX_BLOCKS} `if`, `elif` and `for` are open");
            return Err(PromptError::at(line, &words));
        }
        Ok(())
    }

    /// Checks that all names are known and that nothing is built or called. The engine checks the
    /// syntax of the expression.
    fn check_expression(&mut self, tokens: &[(Token<'a>, u16)]) -> Result<(), PromptError> {
        let mut after = After::Operator;
        for (token, line) in tokens {
            let fault = |words: &str| Err(PromptError::at(*line, words));
            after = match (after, token) {
                (After::Dot, Token::Ident(_) | Token::Int(_)) => After::Operand,
                (After::Is, Token::Ident("not")) => After::Is,
                (After::Pipe, Token::Ident(name)) if FILTERS.contains(name) => After::Applied,
                (After::Is, Token::Ident(name)) if TESTS.contains(name) => After::Applied,
                (After::Pipe, Token::Ident(name)) => {
                    return fault(&format!("filter {name} is unknown; known are {}", FILTERS.join(", ")));
                }
                (After::Is, Token::Ident(name)) => {
                    return fault(&format!("test {name} is unknown; known are {}", TESTS.join(", ")));
                }
                (After::Dot | After::Pipe | After::Is, _) => return fault("a name is expected here"),
                (_, Token::Ident("is")) => After::Is,
                (_, Token::Ident(name)) if OPERATORS.contains(name) => After::Operator,
                (_, Token::Ident(name)) => {
                    self.look_up(name, *line);
                    After::Operand
                }
                (After::Operand, Token::ParenOpen) => return fault("a prompt shows values and does not call them"),
                (After::Operator | After::Applied, Token::BracketOpen) => {
                    return fault("a prompt shows values and does not build them: lists are not allowed");
                }
                (After::Applied, Token::Dot) => return fault("a filter or test has a simple name"),
                (_, Token::Dot) => After::Dot,
                (_, Token::Pipe) => After::Pipe,
                (
                    _,
                    Token::Str(_)
                    | Token::String(_)
                    | Token::Int(_)
                    | Token::Int128(_)
                    | Token::Float(_)
                    | Token::ParenClose
                    | Token::BracketClose,
                ) => After::Operand,
                (
                    _,
                    Token::Plus
                    | Token::Mul
                    | Token::Pow
                    | Token::Tilde
                    | Token::Comma
                    | Token::Assign
                    | Token::BraceOpen
                    | Token::BraceClose,
                ) => {
                    let words = format!("a prompt shows values and does not build them: {token} is not allowed");
                    return fault(&words);
                }
                _ => After::Operator,
            };
        }
        Ok(())
    }

    fn look_up(&mut self, name: &str, line: u16) {
        let mut variables = self.blocks.iter().filter_map(|block| block.variable);
        let is_known = ROOTS.contains(&name)
            || CONSTANTS.contains(&name)
            || variables.any(|variable| variable == name || name == "loop");
        if !is_known && self.scanned.unknown.is_none() {
            let words =
                format!("nothing can set `{name}`: a prompt reads `variables`, `metadata` and what its loops name");
            self.scanned.unknown = Some(PromptError::at(line, &words));
        }
    }
}
