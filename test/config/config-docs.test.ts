import { expect } from 'chai';
import { configPage, configPageIsFresh } from '../../script/config-docs.ts';

describe('docs/configuration.md', () => {
  it('is what the settings say (npx tsx script/config-docs.ts writes it)', () => {
    expect(configPageIsFresh()).to.equal(true);
  });

  it('shows each setting in its three forms, with its default', () => {
    expect(configPage()).to.include(
      '| `uidRange.first` | `SANDPOOL_UID_RANGE_FIRST`<br>`--uid-range-first` | `2000000000` |',
    );
  });
});
