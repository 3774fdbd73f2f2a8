import { expect } from 'chai';
import { printable } from '../../src/cli/common/printable.ts';
import { table } from '../../src/cli/show/table.ts';

describe('foreign text on a terminal', () => {
  it('moves no cursor, sets no colour, and does not reverse the text direction', () => {
    expect(printable('a\u001b[31mb\r\n\tc\u0085d\u202eexe\u2066e\u200ff\u061cg')).to.equal(
      'a?[31mb???c?d?exe?e?f?g',
    );
  });

  it('keeps letters, marks and signs of every script', () => {
    const text = 'Ünïcödé שלום 日本語 e\u0301 👩\u200d💻 – “x”';
    expect(printable(text)).to.equal(text);
  });

  it('is escaped in tables, too', () => {
    expect(table(['NAME'], [['a\u202eb']])).to.include('a?b');
  });
});
