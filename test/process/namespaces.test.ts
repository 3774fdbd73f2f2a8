import { expect } from 'chai';
import { namespaceOf, teamOf } from '../../src/daemon/assembly/namespaces.ts';

describe('the namespace of a team', () => {
  for (const pattern of ['{team}', 'sandboxes-{team}', '{team}-x', 'a-{team}-{team}-b']) {
    it(`is parsed back from ${pattern}`, () => {
      for (const team of ['a', 'red', 'red-x', 'x-x'])
        expect(teamOf(pattern, namespaceOf(pattern, team))).to.equal(team);
    });
  }

  it('is unknown if the pattern does not match', () => {
    expect([
      teamOf('sandboxes-{team}', 'kube-system'),
      teamOf('{team}-x', 'red'),
      teamOf('a-{team}-{team}-b', 'a-red-blue-b'),
      teamOf('x-{team}', 'x-'),
    ]).to.deep.equal(Array(4).fill(undefined));
  });
});
