import { expect } from 'chai';
import { machineStates, machineSvg } from '../../src/actors/inspection/machines.ts';
import { ACTOR_KINDS } from '../../src/model/inspection.ts';

describe('the charts of machines, drawn', () => {
  for (const kind of ACTOR_KINDS) {
    it(`have every state of a ${kind}, and how many stand in it or inside it`, () => {
      const states = machineStates(kind).filter(({ path }) => path !== '');
      const leaves = states.filter(({ type }) => type === 'atomic').map(({ path }) => path);
      const leaf = leaves.find((path) => path.includes('.')) ?? leaves[0] ?? '';
      const svg = machineSvg(kind, new Map([[leaf, 12_345]]));

      expect(textsOf(svg)).to.include.members(
        states.filter(({ type }) => type !== 'compound').map(({ path }) => path.split('.').at(-1)),
      );
      expect(textsOf(svg).filter((text) => text.endsWith('12345'))).to.have.length(
        leaf.split('.').length,
      );
      expect(svg)
        .to.match(/^<svg [^]*<\/svg>$/)
        .and.not.match(/@\d+@|<!--|<script/);
    });
  }
});

const textsOf = (svg: string): readonly string[] =>
  [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text = '']) => text);
