import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { ERROR_NOTES } from '../../src/http/openapi/error-notes.ts';

describe('the notes on error codes', () => {
  it('describe when each code is returned, and no other codes', () => {
    const file = new URL('../../src/http/openapi/error-notes.json', import.meta.url);
    const notes = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;

    expect(Object.keys(notes)).to.have.members(Object.keys(ERROR_NOTES));
    for (const [code, { when }] of Object.entries(ERROR_NOTES))
      expect(when, code).to.match(/^\S.*\.$/s);
  });
});
