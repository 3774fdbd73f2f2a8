import { expect } from 'chai';
import { metricsPage, metricsPageIsFresh } from '../../script/metrics-docs.ts';

describe('docs/metrics.md', () => {
  it('is what the catalogue says; else run npx tsx script/metrics-docs.ts', () => {
    expect(metricsPageIsFresh()).to.equal(true);
  });

  it('tells of each metric in a row of its own', () => {
    expect(metricsPage()).to.match(
      /^\| `sandpool_claims_total` \| counter \| `result` \| 8 \| Claims by how they ended/m,
    );
  });
});
