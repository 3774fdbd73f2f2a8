import { expect } from 'chai';
import { controlRoutes, type ControlDeps } from '../../src/http/e2b/control/routes.ts';
import { routesOf } from '../../src/http/server/app.ts';
import type { Operations } from '../../src/services/operations.ts';

/** Rows that have no parameter and the form of a row that has: the corridor takes the former. */
const clashesIn = (rows: readonly { readonly method: string; readonly path: string }[]) =>
  rows.flatMap(({ method, path }) => {
    if (path.includes('{')) return [];
    const others = rows.filter(
      (other) =>
        other.method === method &&
        other.path.includes('{') &&
        new RegExp(`^${other.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
    );
    return others.map((other) => `${method} ${path} is ${other.path}`);
  });

describe('a path without parameters', () => {
  it('is of one row only', () => {
    expect(clashesIn(routesOf({} as Operations))).to.deep.equal([]);
    expect(clashesIn(controlRoutes({} as ControlDeps))).to.deep.equal([]);
  });

  it('is told from one that a parameter takes', () => {
    const rows = [
      { method: 'GET', path: '/envs/{name}' },
      { method: 'GET', path: '/envs/mine' },
      { method: 'POST', path: '/envs/mine' },
    ];
    expect(clashesIn(rows)).to.deep.equal(['GET /envs/mine is /envs/{name}']);
  });
});
