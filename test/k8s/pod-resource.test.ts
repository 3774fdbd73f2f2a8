import { expect } from 'chai';
import { podOf } from '../../src/k8s/pod-resource.ts';
import { aDefinition, anOrder } from '../support/instance-orders.ts';

interface Made { readonly spec: { readonly shareProcessNamespace?: boolean } }

describe('the Pod of an instance', () => {
  const specOf = (names: readonly string[]): Made['spec'] => {
    const [container] = aDefinition({ image: 'busybox' }).containers;
    const definition = { ...aDefinition(), containers: names.map((name) => ({ ...container!, name })) };
    return (podOf(anOrder(definition), 'uid', { runAsUser: 1_000, terminationGraceSeconds: 5 }) as Made).spec;
  };

  it('has a pid 1 that reaps orphans and lets the main process heed SIGTERM', () => {
    expect(specOf(['main']).shareProcessNamespace).to.equal(true);
  });

  it('keeps the processes of several containers apart', () => {
    expect(specOf(['main', 'beside'])).to.not.have.property('shareProcessNamespace');
  });
});
