import { expect } from 'chai';
import { LOG_EVENTS } from '../../src/contracts/log-events.ts';
import { readSourceTree } from './source-tree.ts';

describe('the events of the log', () => {
  // The compiler refuses a call without a code of the table.
  it('are each logged somewhere', () => {
    const text = readSourceTree()
      .filter(({ path }) => path !== 'contracts/log-events.ts')
      .map(({ withStrings }) => withStrings)
      .join('\n');

    expect(Object.keys(LOG_EVENTS).filter((code) => !text.includes(`'${code}'`))).to.deep.equal([]);
  });
});
