import { expect } from 'chai';
import { setup } from 'xstate';
import { chartPages } from '../../script/charts.ts';
import { chartOf } from '../../src/machines/machine-chart.ts';

describe('the state charts in docs/reference/machines', () => {
  it('name every guard', () => {
    for (const [name, text] of chartPages()) expect(text, name).to.not.contain('[…]');
  });

  it('draw nested and parallel states, and connect inner states by their outermost states', () => {
    const machine = setup({ guards: { ready: () => true } }).createMachine({
      id: 'lamp',
      type: 'parallel',
      states: {
        light: {
          initial: 'off',
          states: {
            off: { on: { PRESS: { target: 'on.bright', guard: 'ready' } } },
            on: {
              initial: 'dim',
              on: { TURN: { target: '.dim' } },
              states: {
                dim: {},
                bright: { on: { PRESS: '#lamp.light.off', BURN: '#lamp.light.broken' } },
              },
            },
            broken: { type: 'final' },
          },
        },
        door: {
          initial: 'shut',
          states: { shut: { always: { target: 'open', guard: () => false } }, open: {} },
        },
      },
    });
    expect(chartOf(machine)).to.equal(
      [
        'stateDiagram-v2',
        '  state lamp {',
        '    state "light" as light {',
        '      [*] --> light_off',
        '      state "off" as light_off',
        '      state "on" as light_on {',
        '        [*] --> light_on_dim',
        '        state "dim" as light_on_dim',
        '        state "bright" as light_on_bright',
        '        state "any of these" as light_on_any',
        '        light_on_any --> light_on_dim : TURN',
        '      }',
        '      state "broken" as light_broken',
        '      light_off --> light_on : PRESS [ready] → bright',
        '      light_on --> light_off : in bright – PRESS',
        '      light_on --> light_broken : in bright – BURN',
        '      light_broken --> [*]',
        '    }',
        '    --',
        '    state "door" as door {',
        '      [*] --> door_shut',
        '      state "shut" as door_shut',
        '      state "open" as door_open',
        '      door_shut --> door_open : […]',
        '    }',
        '  }',
      ].join('\n'),
    );
  });
});
