import { expect } from 'chai';
import { parseTraceParent } from '../../src/model/trace-context.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('parseTraceParent', () => {
  it('reads W3C Trace Context', () => {
    expect(parseTraceParent(`00-${TRACE}-${SPAN}-01`)).to.deep.equal({
      traceId: TRACE,
      parentId: SPAN,
      sampled: true,
    });
    expect(parseTraceParent(`00-${TRACE}-${SPAN}-00`)).to.deep.equal({
      traceId: TRACE,
      parentId: SPAN,
      sampled: false,
    });
  });

  it('ignores unknown flags', () => {
    expect(parseTraceParent(`00-${TRACE}-${SPAN}-fe`)).to.have.property('sampled', false);
    expect(parseTraceParent(`00-${TRACE}-${SPAN}-ff`)).to.have.property('sampled', true);
  });

  it('reads the known fields of a later version', () => {
    expect(parseTraceParent(`cc-${TRACE}-${SPAN}-01`)).to.have.property('traceId', TRACE);
    expect(parseTraceParent(`cc-${TRACE}-${SPAN}-01-what-comes`)).to.have.property(
      'traceId',
      TRACE,
    );
  });

  for (const wrong of [
    undefined,
    '',
    '00',
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01 `,
    ` 00-${TRACE}-${SPAN}-01`,
    `ff-${TRACE}-${SPAN}-01`,
    `0-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN.toUpperCase()}-01`,
    `00-${TRACE}-${SPAN}-0G`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    `00-${TRACE}0-${SPAN}-01`,
    `cc-${TRACE}-${SPAN}-01.more`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\n`,
  ]) {
    it(`ignores ${JSON.stringify(wrong)}`, () => {
      expect(parseTraceParent(wrong)).to.equal(undefined);
    });
  }
});
