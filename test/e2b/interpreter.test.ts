import { expect } from 'chai';
import { interpreterIsFresh } from '../../script/code-interpreter.ts';

describe('the code interpreter', () => {
  it('is in its template as its sources are (npx tsx script/code-interpreter.ts)', () => {
    expect(interpreterIsFresh()).to.equal(true);
  });
});
