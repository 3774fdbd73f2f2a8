import { expect } from 'chai';
import { eventCodeOf, LOG_EVENTS } from '../../src/contracts/log-events.ts';
import { readSourceTree, type SourceFile } from './source-tree.ts';

const CALL = /\b(?:\w*[lL]og|logger)\??\.(?:trace|debug|info|warn|error)\(/g;
const LITERAL = /'[^'\n]+'|"[^"\n]+"/g;
/** One literal that nothing is compared with, or several that are put together. */
const SENTENCE = new RegExp(
  `(?<!=== )(?:${LITERAL.source})(?:\\s*\\+\\s*(?:${LITERAL.source}))*`,
  'g',
);

/** What each call of a log is given, without what stands in further brackets. */
const argumentsIn = ({ codeOnly, withStrings }: SourceFile): readonly string[] =>
  [...codeOnly.matchAll(CALL)].map(({ 0: call, index }) => {
    let text = '';
    let depth = 1;
    for (let at = index + call.length; depth > 0 && at < codeOnly.length; at += 1) {
      if ('([{'.includes(codeOnly.charAt(at))) depth += 1;
      if (depth === 1) text += withStrings.charAt(at);
      if (')]}'.includes(codeOnly.charAt(at))) depth -= 1;
    }
    return text;
  });

const textOf = (literals: string): string =>
  [...literals.matchAll(LITERAL)].map(([literal]) => literal.slice(1, -1)).join('');

describe('the events of the log', () => {
  const events = readSourceTree()
    .filter(({ part }) => part !== 'cli')
    .flatMap(argumentsIn)
    .flatMap((text) => [...text.matchAll(SENTENCE)].map(([literals]) => textOf(literals)));

  it('each have a code, and each code has an event', () => {
    const codes = new Set(events.map(eventCodeOf));

    expect(events.filter((event) => eventCodeOf(event) === undefined)).to.deep.equal([]);
    expect(Object.keys(LOG_EVENTS).filter((code) => !codes.has(code))).to.deep.equal([]);
  });
});
