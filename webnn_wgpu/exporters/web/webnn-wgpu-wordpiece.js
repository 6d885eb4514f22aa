// Divides texts into the tokens of WordPiece, as BERT's tokenizer does.

const CJK = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2b81f}\u{2b820}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;
const PUNCTUATION = /[!-/:-@[-`{-~]|\p{P}/gu;
const CONTROL = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u0000\ufffd]/gu;

export class WordPiece {
  /** @param {object} vocabulary the content of vocabulary.json. */
  constructor(vocabulary) {
    this.vocabulary = vocabulary;
    this.numbers = new Map(vocabulary.tokens.map((token, i) => [token, i]));
  }

  /** Return the words of a text, each punctuation mark for itself. */
  words(text) {
    const { lowercase, stripAccents } = this.vocabulary;
    let found = text.replace(CONTROL, "").replace(CJK, " $& ");
    if (stripAccents) found = found.normalize("NFD").replace(/\p{Mn}/gu, "");
    if (lowercase) found = found.toLowerCase();
    return found.replace(PUNCTUATION, " $& ").split(/\s+/u).filter(Boolean);
  }

  /** Return the numbers of a word's tokens: the longest known beginning, then the longest known continuation, and so on. */
  pieces(word) {
    const { unk, prefix, longest } = this.vocabulary;
    const letters = [...word];
    if (letters.length > longest) return [unk];
    const found = [];
    for (let start = 0; start < letters.length;) {
      let end = letters.length, number;
      for (; end > start; end--) {
        number = this.numbers.get((start ? prefix : "") + letters.slice(start, end).join(""));
        if (number !== undefined) break;
      }
      if (number === undefined) return [unk];
      found.push(number);
      start = end;
    }
    return found;
  }

  /** Return the numbers of a text's tokens, with those of its begin and end, and how many there are before the padding. */
  encode(text, length) {
    const { cls, sep, pad } = this.vocabulary;
    const tokens = [cls, ...this.words(text).flatMap((word) => this.pieces(word)).slice(0, length - 2), sep];
    return { ids: [...tokens, ...Array(length - tokens.length).fill(pad)], count: tokens.length };
  }
}
